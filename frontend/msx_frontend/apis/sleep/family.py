"""vLLM's `/sleep`, `/wake_up` and `/is_sleeping`, for operators; and the same calls for a model by its name.

https://docs.vllm.ai/en/latest/features/sleep_mode.html
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, Protocol

from msx_core.service_errors import BadRequest
from msx_frontend.models.model_api import StatusMessage
from msx_frontend.models.parameters import text
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.parameters import parameters
from msx_net.http.replies import STATUS_SCHEMA, json_reply, status_reply
from msx_net.http.request import Request

MODEL, VERSION, LEVEL, TAGS = "model", "version", "level", "tags"
OF_MODEL = "/models/{model_name}"
LEVELS = ("1", "2")
PARTS = frozenset({"weights", "kv_cache"})
EXAMPLES = {"sleep": {LEVEL: 1}, "wake_up": {VERSION: "1.0"}}
SLEEPING: dict[str, Any] = {
    "type": "object",
    "required": ["is_sleeping"],
    "properties": {"is_sleeping": {"type": "boolean"}},
}


class Sleeps(Protocol):
    """ModelApi. Every method raises ServiceError."""

    def find(self, name: str, number: str | None) -> ModelVersion: ...

    def sleepers(self) -> list[str]: ...

    def change_sleep(self, name: str, number: str | None, level: int) -> Coroutine[Any, Any, StatusMessage]: ...


def sleep(models: Sleeps) -> Family:
    async def fall_asleep(request: Request) -> Reply:
        return status_reply(*await models.change_sleep(*_named(models, request), _level(request)))

    async def wake_up(request: Request) -> Reply:
        _check_parts(request)
        return status_reply(*await models.change_sleep(*_named(models, request), 0))

    async def is_sleeping(request: Request) -> Reply:
        return json_reply({"is_sleeping": models.find(*_named(models, request)).sleep.level > 0})

    def routes() -> Iterator[Route]:
        for path, prefix, queries in (("", "", (MODEL, VERSION)), (OF_MODEL, "model_", (VERSION,))):
            yield _route(
                "POST", f"{path}/sleep", fall_asleep, "Release a model's memory", f"{prefix}sleep", LEVEL, *queries
            )
            yield _route("POST", f"{path}/wake_up", wake_up, "Have it back", f"{prefix}wakeUp", TAGS, *queries)
        yield _route("GET", "/is_sleeping", is_sleeping, "Is the model asleep?", "isSleeping", MODEL, VERSION)

    return Family("sleep", tuple(routes()), own_failure, listener="management", closes_on_error=True)


def _named(models: Sleeps, request: Request) -> tuple[str, str | None]:
    """Model and version; without a name the only model that can sleep. Raises BadRequest."""
    values = parameters(request)
    name = request.names.get("model_name") or text(values, MODEL)
    if name is None:
        known = models.sleepers()
        if len(known) != 1:
            which = f"more than one can sleep: {', '.join(known)}" if known else "no model here can sleep"
            raise BadRequest(f"Parameter model is required: {which}.")
        name = known[0]
    return name, text(values, VERSION)


def _level(request: Request) -> int:
    """Raises BadRequest."""
    if (level := text(parameters(request), LEVEL) or "1") not in LEVELS:
        raise BadRequest(f"level must be 1 (release keys and values) or 2 (the weights, too), not {level[:80]}.")
    return int(level)


def _check_parts(request: Request) -> None:
    """vLLM wakes parts one by one. Raises BadRequest."""
    asked = request.query.getlist(TAGS) or parameters(request).get(TAGS) or []
    if asked and (not isinstance(asked, list) or {*map(str, asked)} != PARTS):
        raise BadRequest("tags: weights and kv_cache are woken together; leave tags out, or name both.")


_managed = partial(Route, key="management", model="")


def _route(method: str, path: str, answer: Any, summary: str, operation: str, *queries: str) -> Route:
    return _managed(
        method,
        path,
        answer,
        summary=summary,
        operation=operation,
        queries=tuple((name, "integer" if name == LEVEL else "string") for name in queries),
        example=EXAMPLES.get(path.rpartition("/")[2]),
        response_schema=SLEEPING if method == "GET" else STATUS_SCHEMA,
    )
