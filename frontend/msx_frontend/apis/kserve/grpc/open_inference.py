"""The Open Inference Protocol (KServe v2) over gRPC, with Triton's extensions."""

import asyncio
from typing import Any

from google.protobuf.json_format import ParseDict

from msx_core.held_bytes import HeldBytes
from msx_core.kserve.types import HEADER_LENGTH
from msx_core.priorities import class_headers
from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.service_errors import BadRequest, ServiceError
from msx_frontend.apis.kserve.grpc.infer_messages import InferMessages, parameters_of
from msx_frontend.apis.kserve.grpc.infer_stream import InferStream
from msx_frontend.apis.kserve.grpc.status import open_inference_code
from msx_frontend.apis.kserve.grpc.typed_contents import use_typed_contents
from msx_frontend.apis.kserve.infer import only_message
from msx_frontend.apis.kserve.metadata import model_config, model_metadata, server_metadata
from msx_frontend.apis.kserve.repository import Repository, answers
from msx_frontend.apis.kserve.statistics import statistics
from msx_frontend.job import INFER, Field, Job
from msx_frontend.models.health import KnowsReadiness
from msx_frontend.models.registry import Registry
from msx_net.grpc.buffered_reply import reply_to
from msx_net.grpc.context import CallContext, LogsCalls
from msx_net.grpc.messages import message_class
from msx_net.grpc.service import CodeOf, DetailsOf, Rpc, Service, describe
from msx_net.grpc.status import sentence

PACKAGE = "inference"
TORCHSERVE_PACKAGE = "org.pytorch.serve.grpc.openinference"


class OpenInferenceService:
    """`package` is the standard one, or one with a copy of its messages; what its service lacks is not served.

    With `typed_outputs` tensors are answered as typed fields rather than raw bytes.
    """

    def __init__(
        self,
        registry: Registry,
        health: KnowsReadiness,
        repository: Repository,
        *,
        package: str = PACKAGE,
        code_of: CodeOf = open_inference_code,
        details_of: DetailsOf = sentence,
        typed_outputs: bool = False,
        access_log: LogsCalls | None = None,
        held: HeldBytes | None = None,
    ) -> None:
        self._registry = registry
        self._health = health
        self._repository = repository
        self._package = package
        self._code_of = code_of
        self._details_of = details_of
        self._typed_outputs = typed_outputs
        self._access_log = access_log
        self._held = held or HeldBytes()
        self._messages = InferMessages(package)

    @property
    def name(self) -> str:
        return f"{self._package}.GRPCInferenceService"

    def service(self) -> Service:
        methods = {
            "ServerLive": Rpc(self._server_live, key=None),
            "ServerReady": Rpc(self._server_ready, key=None),
            "ServerMetadata": Rpc(self._server_metadata),
            "ModelReady": Rpc(self._model_ready, model="name"),
            "ModelMetadata": Rpc(self._model_metadata, model="name"),
            "ModelInfer": Rpc(self._infer, model="model_name"),
            "ModelStreamInfer": Rpc(self._stream_infer),
            "ModelConfig": Rpc(self._config, model="name"),
            "ModelStatistics": Rpc(self._statistics, model="name"),
            "RepositoryIndex": Rpc(self._index),
            "RepositoryModelLoad": Rpc(self._load, key="management"),
            "RepositoryModelUnload": Rpc(self._unload, key="management"),
        }
        return describe(
            self.name, methods, code_of=self._code_of, details_of=self._details_of, access_log=self._access_log
        )

    def submit(self, request: Any, context: CallContext, request_id: str) -> ReplyBuffer:
        """The job of a ModelInferRequest; its reply is to be closed. Raises ServiceError."""
        if not request.model_name:
            raise BadRequest("model_name is required.")
        body, json_size = self._messages.body(request)
        reply = reply_to(context.admitted)
        job = Job(
            request_id,
            request.model_name,
            request.model_version or None,
            [Field("body", "application/json", body)],
            [(HEADER_LENGTH, str(json_size)), *class_headers(reply.priority)],
            reply,
            kind=INFER,
            deadline=context.deadline,
        )
        try:
            reply.hold = self._held.hold(len(body))
            self._registry.submit(job)
        except ServiceError:
            reply.close()
            raise
        reply.job = job
        return reply

    # -- inference --

    async def _infer(self, request: Any, context: CallContext) -> Any:
        reply = self.submit(request, context, context.admitted.id)
        try:
            answer = await only_message(reply, request.model_name)
            response = self._messages.response(answer.body, answer.json_size)
            response.model_name = request.model_name  # it may be an alias
            if self._typed_outputs:
                await asyncio.to_thread(use_typed_contents, response)
            return response
        finally:
            reply.close()

    async def _stream_infer(self, requests: Any, context: CallContext) -> None:
        make = message_class(f"{self._package}.ModelStreamInferResponse")
        await InferStream(self.submit, self._messages, make, context).run(requests)

    # -- the server and its models --

    async def _server_live(self, request: Any, context: CallContext) -> Any:
        return self._made("ServerLiveResponse", {"live": True})

    async def _server_ready(self, request: Any, context: CallContext) -> Any:
        return self._made("ServerReadyResponse", {"ready": self._health.ready()})

    async def _server_metadata(self, request: Any, context: CallContext) -> Any:
        return self._made("ServerMetadataResponse", server_metadata())

    async def _model_ready(self, request: Any, context: CallContext) -> Any:
        version = self._registry.find(request.name, request.version or None)
        return self._made("ModelReadyResponse", {"ready": answers(version)})

    async def _model_metadata(self, request: Any, context: CallContext) -> Any:
        return self._made("ModelMetadataResponse", model_metadata(self._registry, *_named(request)))

    async def _config(self, request: Any, context: CallContext) -> Any:
        return self._made("ModelConfigResponse", {"config": model_config(self._registry, *_named(request))})

    async def _statistics(self, request: Any, context: CallContext) -> Any:
        name, version = _named(request)
        found = statistics(self._registry, name or None, version, context.admitted.may_use)
        return self._made("ModelStatisticsResponse", found)

    # -- the repository --

    async def _index(self, request: Any, context: CallContext) -> Any:
        index = await self._repository.index(request.ready)
        models = [one for one in index if context.admitted.may_use(one["name"])]
        return self._made("RepositoryIndexResponse", {"models": models})

    async def _load(self, request: Any, context: CallContext) -> Any:
        await self._repository.load(request.model_name, parameters_of(request.parameters))
        return self._made("RepositoryModelLoadResponse", {})

    async def _unload(self, request: Any, context: CallContext) -> Any:
        await self._repository.unload(request.model_name)
        return self._made("RepositoryModelUnloadResponse", {})

    def _made(self, message: str, values: dict[str, Any]) -> Any:
        """Members that this package's message lacks are left out."""
        return ParseDict(values, message_class(f"{self._package}.{message}")(), ignore_unknown_fields=True)


def _named(request: Any) -> tuple[str, str | None]:
    return request.name, request.version or None
