"""A generation on a node, whose server and other nodes may do anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from msx_protocol.message import WireMessage
from msx_ray.agent import generation as module
from msx_ray.agent.generation import NodeGeneration
from msx_ray.agent.invitation import Invitation
from msx_ray.agent_messages import Begin, CannotStart, Cleared, Meet, NodeContent, RankStart, Ready
from msx_ray.source_limits import OF_AGENT, SPEAKING

INVITATION = Invitation(addresses=["127.0.0.1"], port=1, key="", fingerprint="", share=0, node="node-a")


class Told(list[WireMessage]):
    """Messages to the server."""

    async def next(self, kind: type[WireMessage]) -> WireMessage:
        while True:
            if (found := next((one for one in self if isinstance(one, kind)), None)) is not None:
                return found
            await asyncio.sleep(0.001)


def on_node(test: Callable[[NodeGeneration, Told], Awaitable[None]], *, rank: int = 0, contents: int = 0) -> None:
    """With this rank of two here, which is ended in the end."""

    async def run() -> None:
        told = Told()
        asked = [NodeContent("0" * 64, "/nowhere", "archive")] * contents
        begin = Begin(7, "m", "key", 1, [RankStart(rank, {})], asked, 2, ["192.0.2.1", "192.0.2.2"])
        generation = NodeGeneration(begin, INVITATION, "127.0.0.1", told.append)
        await asyncio.wait_for(test(generation, told), 120)
        await asyncio.wait_for(generation.end(), 120)
        assert told[-1] == Cleared(7)

    asyncio.run(run())


def meet_at(ready: WireMessage) -> Meet:
    assert isinstance(ready, Ready)
    return Meet(7, "127.0.0.1", ready.master_port, ready.plan_port, ready.plan_fingerprint)


def test_the_agents_of_other_ranks_are_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAN_LIMIT", 0.01)

    async def test(generation: NodeGeneration, told: Told) -> None:
        generation.meet(meet_at(await told.next(Ready)))
        assert await told.next(CannotStart) == CannotStart(
            7,
            "Node node-a: the agents of the group's other nodes have not connected with 127.0.0.1 within 0.01 s: "
            "check that the nodes reach each other.",
        )

    on_node(test)


def test_it_ends_while_it_waits_for_other_agents() -> None:
    """For which it keeps room."""

    async def test(generation: NodeGeneration, told: Told) -> None:
        generation.meet(meet_at(await told.next(Ready)))
        await asyncio.sleep(0)
        assert generation._door is not None
        assert generation._door.limits.speaking.places == SPEAKING + 2 * OF_AGENT

    on_node(test)


def test_the_agent_of_rank_0_is_not_there() -> None:
    async def test(generation: NodeGeneration, told: Told) -> None:
        await told.next(Ready)
        generation.meet(Meet(7, "127.0.0.1", 1, 1, "0" * 64))
        failure = await told.next(CannotStart)
        assert isinstance(failure, CannotStart)
        assert failure.reason.startswith("Node node-a: 127.0.0.1:1: ")

    on_node(test, rank=1)


def test_a_meeting_before_it_is_ready_begins_when_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only the first one counts: nothing is started twice."""
    fetched = asyncio.Event()
    started: list[Meet] = []

    async def folder_of(*arguments: object) -> str:
        await fetched.wait()
        return str(Path("/nowhere"))

    async def connect_plans(self: NodeGeneration, meet: Meet) -> None:
        started.append(meet)
        raise OSError("enough")

    monkeypatch.setattr(module, "folder_of", folder_of)
    monkeypatch.setattr(NodeGeneration, "_connect_plans", connect_plans)

    async def test(generation: NodeGeneration, told: Told) -> None:
        first = Meet(7, "127.0.0.1", 1)
        generation.meet(first)
        generation.meet(Meet(7, "127.0.0.1", 2))
        await asyncio.sleep(0)
        assert told == []
        fetched.set()
        await told.next(CannotStart)
        assert started == [first]
        assert isinstance(told[0], Ready)

    on_node(test, contents=1)


def test_the_end_reaches_what_prepares_behind_a_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching: list[asyncio.Task[None]] = []

    async def folder_of(*arguments: object) -> str:
        fetching.append(asyncio.current_task())  # type: ignore[arg-type]
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(module, "folder_of", folder_of)

    async def test(generation: NodeGeneration, told: Told) -> None:
        while not fetching:
            await asyncio.sleep(0)
        generation.meet(Meet(7, "127.0.0.1", 1))
        await asyncio.sleep(0)

    on_node(test, contents=1)
    assert fetching[0].cancelled()
