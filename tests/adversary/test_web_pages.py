"""A web page that somebody opens beside a server without keys: no call of the management is for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.adversary.asks import lists
from tests.adversary.rig import VICTIM, Attack, at_doors, doors_of
from tests.adversary.wires import Answer, answer_to
from tests.e2e.server import run_server

pytestmark = [pytest.mark.e2e, pytest.mark.long]

PAGES = (
    {"origin": "https://page.example", "content-type": "text/plain"},
    {"sec-fetch-site": "cross-site"},
    {"origin": "null"},
)
SAFE = ("GET", "HEAD", "OPTIONS")
REBOUND = {"host": "page.example"}
"""DNS rebinding: the page's own name leads to the loopback address."""


async def answers(attack: Attack) -> AsyncIterator[tuple[dict[str, str], Answer]]:
    for headers in (REBOUND, *(() if attack.ask.method in SAFE else PAGES)):
        if attack.ask.grpc:
            headers = {name: value for name, value in headers.items() if name != "content-type"}
        async with attack.connected() as wire:
            yield headers, await answer_to(wire, attack.ask, "", headers)


async def refusals(attacks: list[Attack]) -> list[str]:
    """Requests that were not refused."""
    found = []
    for attack in attacks:
        async for headers, answer in answers(attack):
            if answer.status != 403 and answer.grpc != "7":
                found.append(f"{attack.name} {headers}: {answer}")
    return found


def test_a_page_manages_nothing(tmp_path: Path) -> None:
    async def test() -> list[str]:
        own = tmp_path / "lists"
        own.mkdir()
        async with lists(own) as found:
            asks = [ask for ask in found.asks(VICTIM) if ask.key == "management" and ask.listener != "metrics"]
        return await refusals(list(at_doors(asks, doors_of(server, ""))))

    with run_server(tmp_path) as server:
        assert asyncio.run(test()) == []
