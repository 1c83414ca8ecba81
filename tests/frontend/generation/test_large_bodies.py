"""A large body is received, read and sent to a worker in turns of the loop of their own: others are served between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from msx_frontend.generation import text_route
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.text_route import TextTemplate
from tests.frontend.generation.speaker import Speaker, words
from tests.loops import run

BODY = {"prompt": "x" * 64}
SMALL = {"prompt": "x"}


@pytest.fixture(autouse=True)
def _low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_route, "LARGE", 32)


class Turns:
    """The turn of the loop in which each of these was called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._turn, self.of = 0, dict[str, int]()
        for owner, name in ((TextTemplate, "submit"), (TextRequest, "read"), (TextRequest, "submit")):
            self._watch(monkeypatch, owner, name)

    def count(self) -> None:
        self._turn += 1
        asyncio.get_running_loop().call_soon(self.count)

    def _watch(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        call = getattr(owner, name)

        def watched(*args: Any) -> Any:
            self.of[f"{owner.__name__}.{name}"] = self._turn
            return call(*args)

        monkeypatch.setattr(owner, name, watched)


@pytest.mark.parametrize(("body", "turns"), [(BODY, 3), (SMALL, 1)])
def test_turns_of_their_own(monkeypatch: pytest.MonkeyPatch, body: dict[str, str], turns: int) -> None:
    async def test() -> None:
        seen = Turns(monkeypatch)
        seen.count()
        exchange = await Speaker([words("a")]).ask("/v1/completions", body)
        assert (exchange.status, exchange.json["choices"][0]["text"]) == (200, "a")
        assert [*seen.of] == ["TextTemplate.submit", "TextRequest.read", "TextRequest.submit"]
        assert len({*seen.of.values()}) == turns

    run(test())


def test_a_refusal_is_that_of_a_small_one() -> None:
    async def test() -> None:
        small, large = [await Speaker().ask("/v1/completions", {"prompt": 1, "model": "m" * n}) for n in (1, 64)]
        assert (large.status, large.json) == (small.status, small.json)
        assert large.status == 400

    run(test())


def test_a_client_that_leaves_between(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        speaker, came, read = Speaker(), asyncio.Event(), TextRequest.read

        def leaving(request: TextRequest, kind: Any) -> Any:
            asked = read(request, kind)
            request.cancel()
            asyncio.get_running_loop().call_soon(came.set)
            return asked

        monkeypatch.setattr(TextRequest, "read", leaving)
        exchange = speaker.begin("/v1/completions", BODY)
        await came.wait()
        exchange.leave()
        await exchange.finish()
        assert speaker.jobs == []

    run(test())
