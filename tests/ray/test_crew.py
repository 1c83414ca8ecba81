"""Reports of agents on themselves, and the end of one."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from msx_protocol import PREFIX
from msx_ray.agent_messages import AgentInfo, Cleared, FromAgent
from msx_ray.crew import MAX_MESSAGE, Crew
from msx_ray.messages import Place


class Generation:
    number = 7

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def received(self, share: int, message: FromAgent) -> None:
        self.heard.append((share, message))

    def left(self, share: int, reason: str) -> None:
        self.heard.append((share, reason))


def crew_of(lost: list[str]) -> Crew:
    return Crew([Place(number, "id", f"node-{number}", "192.0.2.1") for number in range(2)], lost.append)


@pytest.mark.parametrize(("niceness", "warned"), [(0, False), (-5, False), (15, True)])
def test_ranks_of_low_priority_are_told(caplog: Any, niceness: int, warned: bool) -> None:
    caplog.set_level(logging.INFO)

    async def test() -> None:
        crew_of([])._received(0, AgentInfo("node-a", 77, niceness))

    asyncio.run(test())
    assert "agent on node node-a is there (pid 77)" in caplog.text
    assert ("set RAY_worker_niceness=0 in the environment of `ray start`" in caplog.text) == warned


def test_a_generation_hears_its_agents_until_it_is_forgotten() -> None:
    async def test() -> None:
        crew, generation = crew_of([]), Generation()
        crew.begin(generation)
        crew._received(1, Cleared(7))
        crew._received(1, Cleared(8))
        assert generation.heard == [(1, Cleared(7))]
        crew.forget(generation)
        crew._received(1, Cleared(7))
        assert len(generation.heard) == 1

    asyncio.run(test())


@pytest.mark.parametrize("closed", [False, True], ids=["by itself", "closed"])
def test_an_agent_that_leaves_is_told_and_loses_the_place_unless_it_was_sent_away(closed: bool) -> None:
    async def test() -> None:
        lost: list[str] = []
        crew, generation = crew_of(lost), Generation()
        crew.begin(generation)
        if closed:
            crew.close()
        crew._left(1, None)
        assert generation.heard == [(1, "the agent on node node-1 has ended")]
        assert lost == ([] if closed else ["the agent on node node-1 has ended"])

    asyncio.run(test())


class Writing(asyncio.Transport):
    def abort(self) -> None: ...


@pytest.mark.parametrize(
    ("head", "body", "claim"), [(MAX_MESSAGE + 1, 0, "head of 1048577"), (1, 1 << 30, "body of 1073741824")]
)
def test_an_agent_cannot_make_the_server_hold_more_than_a_message(head: int, body: int, claim: str) -> None:
    async def test() -> None:
        lost: list[str] = []
        crew = crew_of(lost)
        channel = crew.links[1]._channel
        channel.connection_made(Writing())
        prefix = PREFIX.pack(head, body)
        channel.get_buffer(-1)[: len(prefix)] = prefix
        channel.buffer_updated(len(prefix))
        (reason,) = lost
        assert reason.startswith(f"the connection with node node-1 broke (a frame claims a {claim} bytes")

    asyncio.run(test())
