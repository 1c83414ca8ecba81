"""vLLM's routes for operators: which model they mean, and what they refuse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from starlette.datastructures import QueryParams

from msx_core.service_errors import BadRequest
from msx_frontend.apis.sleep.family import sleep
from msx_frontend.models.model_api import StatusMessage
from msx_net.http.family import Reply
from msx_net.http.request import Request
from tests.loops import run


class FakeModels:
    def __init__(self, *sleepers: str) -> None:
        self.known, self.calls = list(sleepers), list[tuple[str, str | None, int]]()

    def sleepers(self) -> list[str]:
        return self.known

    def find(self, name: str, number: str | None) -> Any:
        return SimpleNamespace(sleep=SimpleNamespace(level=int(name == "deep")))

    async def change_sleep(self, name: str, number: str | None, level: int) -> StatusMessage:
        self.calls.append((name, number, level))
        return StatusMessage("done")


def ask(models: FakeModels, path: str, query: str = "", body: bytes = b"", **names: str) -> bytes:
    route = next(one for one in sleep(models).routes if one.path == path)
    call = SimpleNamespace(query=query, content_type=b"application/json" if body else b"")
    request = SimpleNamespace(names=names, query=QueryParams(query), body=body, call=call)
    request.json = lambda: msgspec.json.decode(body)
    answer = cast(Any, route.answer)
    reply: Reply = run(answer(cast(Request, request)))
    assert isinstance(reply.body, bytes)
    return reply.body


def test_the_only_model_that_can_sleep_is_meant() -> None:
    models = FakeModels("llm")
    ask(models, "/sleep")
    ask(models, "/sleep", "level=2&model=other&version=2.0")
    ask(models, "/wake_up", "tags=weights&tags=kv_cache")
    ask(models, "/models/{model_name}/sleep", "version=3.0", model_name="named")
    assert models.calls == [("llm", None, 1), ("other", "2.0", 2), ("llm", None, 0), ("named", "3.0", 1)]
    assert ask(models, "/is_sleeping", "model=deep").split() == b'{ "is_sleeping": true }'.split()


@pytest.mark.parametrize(
    ("path", "query", "sleepers", "sentence"),
    [
        ("/sleep", "", ("a", "b"), "Parameter model is required: more than one can sleep: a, b."),
        ("/wake_up", "", (), "Parameter model is required: no model here can sleep."),
        ("/sleep", "level=3", ("a",), r"level must be 1 .* or 2 .*, not 3"),
        ("/sleep", "level=deep", ("a",), "not deep"),
        ("/wake_up", "tags=weights", ("a",), "tags: weights and kv_cache are woken together"),
    ],
)
def test_what_is_refused(path: str, query: str, sleepers: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        ask(FakeModels(*sleepers), path, query)
