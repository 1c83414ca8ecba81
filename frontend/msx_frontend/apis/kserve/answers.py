"""The answer of each route. Every method raises ServiceError."""

from __future__ import annotations

from msx_frontend.apis.kserve.errors import failure
from msx_frontend.apis.kserve.exchange import JSON, Reply, Request, json_reply
from msx_frontend.apis.kserve.infer import Answer, check, only_answer
from msx_frontend.apis.kserve.metadata import model_config, model_metadata, server_metadata
from msx_frontend.apis.kserve.repository import Repository, answers
from msx_frontend.apis.kserve.statistics import statistics
from msx_frontend.errors import BadRequest, ServiceError
from msx_frontend.job import INFER, PREDICT, Field, Job, StatusMappedJob
from msx_frontend.models.health import Health
from msx_frontend.models.registry import Registry
from msx_frontend.net.http.disconnect import DisconnectWatch
from msx_frontend.net.http.parse import parse_fields
from msx_frontend.public_text import public_text
from msx_frontend.queueing.reply_buffer import ReplyBuffer
from msx_sdk._internal.kserve.types import HEADER_LENGTH

BINARY = ("content-type", "application/octet-stream")
TORCHSERVE = {"extenstion": ["kserve", "kubeflow"]}
"""The member of TorchServe's `GET /v2`, as it spells it."""
_PLAIN = ("", "application/json", "application/octet-stream")


class Answers:
    def __init__(self, registry: Registry, health: Health, repository: Repository) -> None:
        self._registry, self._health, self._repository = registry, health, repository

    # -- the server --

    async def server(self, request: Request) -> Reply:
        return json_reply({**server_metadata(), **TORCHSERVE})

    async def live(self, request: Request) -> Reply:
        return json_reply({"live": True})

    async def ready(self, request: Request) -> Reply:
        """The protocol's text has the member `live`, KServe's servers and TorchServe have `ready`."""
        ready = self._health.ready()
        if ready:
            return json_reply({"ready": True, "live": True})
        reason = f"The server is not ready: {self._health.not_ready_because()}."
        return json_reply({"ready": False, "live": True, "error": reason}, 503)

    # -- models --

    async def models(self, request: Request) -> Reply:
        return json_reply({"models": [name for name in self._registry.names() if request.call.may_use(name)]})

    async def model(self, request: Request) -> Reply:
        return json_reply(model_metadata(self._registry, request.model, request.version))

    async def model_ready(self, request: Request) -> Reply:
        version = self._registry.find(request.model, request.version)
        if answers(version):
            return json_reply({"name": request.model, "ready": True})
        error = f"Model {request.model} is not ready: {public_text(version.reason) or 'it has no worker that answers'}"
        return json_reply({"name": request.model, "ready": False, "error": error}, 503)

    async def config(self, request: Request) -> Reply:
        return json_reply(model_config(self._registry, request.model, request.version))

    async def statistics(self, request: Request) -> Reply:
        return json_reply(statistics(self._registry, request.model, request.version))

    async def all_statistics(self, request: Request) -> Reply:
        return json_reply(statistics(self._registry, None, None, request.call.may_use))

    # -- the repository --

    async def index(self, request: Request) -> Reply:
        only_ready = request.object().get("ready", False)
        if not isinstance(only_ready, bool):
            raise BadRequest("'ready' must be true or false.")
        index = await self._repository.index(only_ready)
        return json_reply([entry for entry in index if request.call.may_use(entry["name"])])

    async def load(self, request: Request) -> Reply:
        parameters = request.object().get("parameters", {})
        if not isinstance(parameters, dict):
            raise BadRequest("'parameters' must be an object.")
        await self._repository.load(request.model, parameters)
        return json_reply({"name": request.model, "load": True})

    async def unload(self, request: Request) -> Reply:
        await self._repository.unload(request.model)
        return json_reply({"name": request.model, "unload": True})

    # -- inference --

    async def infer(self, request: Request) -> Reply:
        return await self._run(request, explain=False)

    async def explain(self, request: Request) -> Reply:
        return await self._run(request, explain=True)

    async def _run(self, request: Request, *, explain: bool) -> Reply:
        reply = ReplyBuffer()
        job = _job(request, reply, explain)
        self._registry.submit(job)
        reply.job = job
        watch = DisconnectWatch(job.cancel, request.receive)
        try:
            if job.kind == INFER:
                return _inferred(await only_answer(reply, request.model))
            return await _as_it_is(reply)
        finally:
            watch.stop()
            reply.close()


def _job(request: Request, reply: ReplyBuffer, explain: bool) -> Job:
    call = request.call
    headers = [*call.headers(), ("explain", str(explain)), ("url_path", "")]
    if _is_inference(request):
        kind, fields = INFER, [Field("body", "application/json", request.body)]
    else:
        kind, fields = PREDICT, parse_fields(call.content_type, request.body)
    return StatusMappedJob(_told, call.id, request.model, request.version, fields, headers, reply, kind=kind)


def _told(error: ServiceError) -> int:
    return failure(error).status


def _is_inference(request: Request) -> bool:
    """Clients send JSON without a type, or with a wrong one; an image with its own is a plain prediction."""
    kind = request.call.content_type.decode("latin-1").partition(";")[0].strip().lower()
    return kind in _PLAIN or request.body.lstrip()[:1] == b"{" or bool(request.header(HEADER_LENGTH))


def _inferred(answer: Answer) -> Reply:
    """The handler's own headers, but the protocol's content type."""
    headers = [pair for pair in answer.headers if pair[0].lower() != "content-type"]
    binary = answer.json_size < len(answer.body)
    headers += [BINARY, (HEADER_LENGTH, str(answer.json_size))] if binary else [JSON]
    return Reply(answer.body, answer.status, headers, compressible=True, phrase=answer.phrase)


async def _as_it_is(reply: ReplyBuffer) -> Reply:
    head = await reply.head()
    chunks = [chunk async for chunk in reply]
    check(head.status, chunks)
    return Reply(b"".join(chunks), head.status, head.headers, compressible=True, phrase=head.phrase)
