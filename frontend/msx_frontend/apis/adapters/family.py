"""`/v1/load_lora_adapter` and `/v1/unload_lora_adapter`, in vLLM's shapes, for operators."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from msx_core.service_errors import BadRequest, ServiceError
from msx_frontend.generation.decoding import decode
from msx_frontend.generation.errors import as_json, openai_failure
from msx_frontend.management_errors import AdapterNotFound
from msx_frontend.models.loaded_adapters import LoadedAdapters
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.family import Failure, Family, Reply, Route
from msx_net.http.request import Request

PLAIN = (("content-type", "text/plain; charset=utf-8"),)
Name = Annotated[str, Meta(min_length=1, max_length=128)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]


class UnloadAdapter(Struct):
    """`model`, or `base_model_name`: needed where several models could be meant."""

    lora_name: Name
    model: str | None = None
    base_model_name: str | None = None

    @property
    def base(self) -> str | None:
        return self.model or self.base_model_name


class LoadAdapter(UnloadAdapter, kw_only=True):
    """`load_inplace`: in the place of the one that was loaded under this name."""

    lora_path: Path
    load_inplace: bool = False


def adapters_api(registry: Registry, adapters: LoadedAdapters) -> Family:
    api = AdapterRoutes(registry, adapters)
    routes = (
        _route("/v1/load_lora_adapter", api.load, "Load a LoRA adapter while its model runs", LoadAdapter),
        _route(
            "/v1/unload_lora_adapter", api.unload, "Unload a LoRA adapter; running texts end with it", UnloadAdapter
        ),
    )
    return Family("adapters", routes, failure, listener="management")


def failure(error: ServiceError) -> Failure:
    return as_json(openai_failure(error))


class AdapterRoutes:
    def __init__(self, registry: Registry, adapters: LoadedAdapters) -> None:
        self._registry, self._adapters = registry, adapters

    async def load(self, request: Request) -> Reply:
        call = decode(request.body, LoadAdapter)
        version = _allowed(request, self._named(call.base) if call.base else self._loadable())
        id, again = request.call.id, call.load_inplace
        await self._adapters.load(version, call.lora_name, call.lora_path, again=again, request=id)
        return _told(f"Success: LoRA adapter '{call.lora_name}' added successfully.")

    async def unload(self, request: Request) -> Reply:
        call = decode(request.body, UnloadAdapter)
        version = _allowed(request, self._named(call.base) if call.base else self._with(call.lora_name))
        await self._adapters.unload(version, call.lora_name)
        return _told(f"Success: LoRA adapter '{call.lora_name}' removed successfully.")

    def _named(self, model: str) -> ModelVersion:
        self._registry.aliases.refuse(model)
        return self._registry.find(model)

    def _loadable(self) -> ModelVersion:
        """The only model that takes adapters, or else the only one that generates, which says why it does not."""
        every = self._defaults()
        able = [one for one in every if one.schema.capabilities and one.schema.capabilities.load_adapter]
        found = able or [one for one in every if one.schema.capabilities and one.schema.capabilities.generate]
        if not found:
            raise BadRequest("None of the models that are loaded takes adapters.")
        return _only(found)

    def _with(self, adapter: str) -> ModelVersion:
        found = [one for one in self._defaults() if adapter in one.schema.adapters]
        if not found:
            raise AdapterNotFound("", adapter)
        return _only(found)

    def _defaults(self) -> list[ModelVersion]:
        return [self._registry.find(name) for name in self._registry.names()]


def _allowed(request: Request, version: ModelVersion) -> ModelVersion:
    """Raises ModelNotAllowed for a key of other models."""
    if (key := request.call.limited_key) is not None:
        key.check_model(version.source.name)
    return version


def _only(versions: list[ModelVersion]) -> ModelVersion:
    if len(versions) > 1:
        names = ", ".join(one.source.name for one in versions)
        raise BadRequest(f"model: needed, since there is more than one that could be meant: {names}")
    return versions[0]


def _told(sentence: str) -> Reply:
    return Reply(sentence.encode(), headers=PLAIN)


def _route(path: str, answer: Any, summary: str, body: type[Struct]) -> Route:
    example = {"lora_name": "sql"} | ({"lora_path": "sql"} if body is LoadAdapter else {})
    return Route(
        "POST", path, answer, key="management", summary=summary, model="", request_schema=body, example=example
    )
