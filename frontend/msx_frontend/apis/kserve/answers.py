"""The answer of each route that does not run a model. Every method may raise ServiceError."""

from typing import Any

import msgspec

from msx_core.service_errors import BadRequest
from msx_frontend.apis.kserve.metadata import model_config, model_metadata, server_metadata
from msx_frontend.apis.kserve.repository import Repository, answers
from msx_frontend.apis.kserve.statistics import statistics
from msx_frontend.models.health import Health
from msx_frontend.models.registry import Registry
from msx_frontend.public_text import public_text
from msx_net.http.family import Reply
from msx_net.http.request import Request

TORCHSERVE = {"extenstion": ["kserve", "kubeflow"]}
"""The member of TorchServe's `GET /v2`, as it spells it."""


def json_reply(value: Any, status: int = 200) -> Reply:
    return Reply(msgspec.json.encode(value), status)


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
        return json_reply(model_metadata(self._registry, *_asked(request)))

    async def model_ready(self, request: Request) -> Reply:
        name, number = _asked(request)
        version = self._registry.find(name, number)
        if answers(version):
            return json_reply({"name": name, "ready": True})
        error = f"Model {name} is not ready: {public_text(version.status.reason) or 'it has no worker that answers'}"
        return json_reply({"name": name, "ready": False, "error": error}, 503)

    async def config(self, request: Request) -> Reply:
        return json_reply(model_config(self._registry, *_asked(request)))

    async def statistics(self, request: Request) -> Reply:
        return json_reply(statistics(self._registry, *_asked(request)))

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
        await self._repository.load(_asked(request)[0], parameters)
        return json_reply({"name": _asked(request)[0], "load": True})

    async def unload(self, request: Request) -> Reply:
        await self._repository.unload(_asked(request)[0])
        return json_reply({"name": _asked(request)[0], "unload": True})


def _asked(request: Request) -> tuple[str, str | None]:
    """The model and the version in the path."""
    return request.names["model"], request.names.get("version")
