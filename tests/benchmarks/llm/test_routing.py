"""The load of `llm-routing`, and what its report says. The server is a fake."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import click
import pytest

from benchmarks.llm import conversations
from benchmarks.llm.arrivals import Clients
from benchmarks.llm.checkpoint import token_text
from benchmarks.llm.conversations import ANSWERED, SAID, SYSTEM, ChatLoad, Turns
from benchmarks.llm.routing import _row, _targets
from benchmarks.load.client import Address

ANSWER = list(range(100, 100 + ANSWERED))


class Talker:
    """Each answer is the same; of each prompt 7 tokens are cached."""

    usage = True

    def __init__(self) -> None:
        self.prompts: list[list[int]] = []

    async def open(self, address: Address) -> Talker:
        return self

    def leave(self) -> None:
        pass

    async def stream(self, path: str, body: bytes) -> AsyncIterator[bytes]:
        asked = json.loads(body)
        self.prompts.append(asked["prompt"])
        for token in ANSWER:
            yield event({"choices": [{"text": token_text(token)}], "usage": None})
        used = {"prompt_tokens": len(asked["prompt"]), "prompt_tokens_details": {"cached_tokens": 7}}
        if self.usage:
            yield event({"choices": [], "usage": used})
        yield b"data: [DONE]\n\n"


def event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def test_each_turn_sends_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    talker = Talker()
    monkeypatch.setattr(conversations, "Connection", talker)
    found = ChatLoad(conversations=3, turns=2, at_once=2).run(Address("", 0), Clients(8192), 0)
    first, second = talker.prompts[:3], talker.prompts[3:]
    assert {tuple(prompt[:SYSTEM]) for prompt in talker.prompts} == {tuple(first[0][:SYSTEM])}
    assert sorted(prompt[: SYSTEM + SAID + ANSWERED] for prompt in second) == sorted([*one, *ANSWER] for one in first)
    assert {len(prompt) for prompt in second} == {SYSTEM + 2 * SAID + ANSWERED}
    assert (found.prompt, found.cached, len(found.first)) == (sum(map(len, talker.prompts)), 6 * 7, 6)


def test_an_answer_without_usage_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    talker = Talker()
    talker.usage = False
    monkeypatch.setattr(conversations, "Connection", talker)
    with pytest.raises(click.ClickException, match="no usage"):
        ChatLoad(conversations=1, turns=1, at_once=1).run(Address("", 0), Clients(8192), 0)


def test_the_report() -> None:
    routed, busy = [Turns([0.1, 0.2, 0.3], 1000, 600)], [Turns([0.4, 0.5, 0.6], 1000, 300)]
    assert _row("by prefix", routed) == ("by prefix", "1,000", "600", "60%", "200", "300")
    assert [(target.measured[:4], target.met) for target in _targets(routed, busy)] == [("2.00", True), ("0.40", True)]
    assert [target.met for target in _targets(busy, routed)] == [False, False]
