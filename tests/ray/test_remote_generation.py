"""A generation on nodes, whose agents may leave at any moment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from msx_frontend.devices.nodes import GroupPlacement, Share
from msx_frontend.workers.launcher import GroupSpec, RankSpec
from msx_ray.agent_messages import Ended, FromAgent, RankUsage, Ready, Started
from msx_ray.crew import Crew
from msx_ray.door import Door
from msx_ray.messages import Place
from msx_ray.remote_generation import RemoteGeneration
from msx_ray.remote_rank import broken
from tests.backend.harness import load_message


class ArrivedStreams:
    """A door that all streams have come to; `meanwhile` is called when they are waited for."""

    key = ""

    def __init__(self, meanwhile: Any) -> None:
        self._meanwhile = meanwhile

    @property
    def arrived(self) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        future.set_result({(kind, 0): None for kind in ("data", "control", "stdout", "stderr")})
        self._meanwhile()
        return future


def test_an_agent_that_leaves_after_its_ranks_have_started_leaves_none_behind(tmp_path: Path) -> None:
    async def test() -> None:
        place = Place(0, "id", "node-a", "192.0.2.1")
        crew = Crew([place], lambda reason: None)
        spec = GroupSpec((RankSpec(load_message(tmp_path, "h.py:handle"), {}),), 1, 1, 1)
        placement = GroupPlacement("p", (Share("node-a", "192.0.2.1", (0,)),))
        generation = RemoteGeneration(1, spec, placement, crew)
        door = cast(Door, ArrivedStreams(lambda: generation.left(0, "it has ended")))
        starting = asyncio.ensure_future(generation.start(door, 1, []))
        await asyncio.sleep(0)
        generation.received(0, Ready(1, [], "192.0.2.1", 2))
        generation.received(0, Started(1, 0, 77))
        (rank,) = await starting
        assert rank.ended.result().lost == "It has ended"
        assert rank.cleared.is_set()

    asyncio.run(asyncio.wait_for(test(), 120))


def test_agents_know_the_addresses_of_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one with rank 0 keeps room for the others."""

    async def test() -> None:
        addresses, told = ["192.0.2.1", "192.0.2.2"], list[Any]()
        crew = Crew([Place(number, "id", "node", one) for number, one in enumerate(addresses)], lambda reason: None)
        for link in crew.links:
            monkeypatch.setattr(link, "tell", told.append)
        spec = GroupSpec((RankSpec(load_message(tmp_path, "h.py:handle"), {}),) * 2, 1, 1, 1)
        shares = tuple(Share("node", one, (number,)) for number, one in enumerate(addresses))
        generation = RemoteGeneration(1, spec, GroupPlacement("p", shares), crew)
        door = cast(Door, ArrivedStreams(lambda: None))
        starting = asyncio.ensure_future(generation.start(door, 1, []))
        await asyncio.sleep(0)
        starting.cancel()
        assert [begin.agents for begin in told] == [addresses, addresses]

    asyncio.run(asyncio.wait_for(test(), 120))


def test_a_loss_says_what_is_known() -> None:
    assert broken("node-a", None) == "the agent on node node-a has ended"
    assert broken("node-a", TimeoutError(110, "x")) == "node node-a has not answered for 15 s"
    assert broken("node-a", ConnectionResetError(104, "Connection reset by peer")) == (
        "the connection with node node-a broke (Connection reset by peer)"
    )


def test_an_agent_that_leaves_before_all_streams_have_come(tmp_path: Path) -> None:
    """Nobody waits for the streams of its ranks."""

    async def test() -> None:
        crew = Crew([Place(0, "id", "node-a", "192.0.2.1")], lambda reason: None)
        spec = GroupSpec((RankSpec(load_message(tmp_path, "h.py:handle"), {}),), 1, 1, 1)
        generation = RemoteGeneration(1, spec, GroupPlacement("p", (Share("node-a", "192.0.2.1", (0,)),)), crew)
        door: Any = SimpleNamespace(key="", arrived=asyncio.get_running_loop().create_future())
        starting = asyncio.ensure_future(generation.start(door, 1, []))
        await asyncio.sleep(0)
        generation.received(0, Ready(1, [], "192.0.2.1", 2))
        generation.received(0, Started(1, 0, 77))
        await asyncio.sleep(0)
        generation.left(0, "it has ended")
        with pytest.raises(ConnectionError, match="It has ended"):
            await starting

    asyncio.run(asyncio.wait_for(test(), 120))


@pytest.mark.parametrize(
    "message",
    [
        Ready(1, ["/one", "/two"], "192.0.2.1", 2),
        Ready(1, [], "192.0.2.1", 0),
        Started(1, 1, 77),
        Ended(1, 7, 0),
        RankUsage(1, -1, 1, 1),
    ],
    ids=["folders that nobody asked for", "no place to meet", "started", "ended", "memory"],
)
def test_an_agent_that_speaks_of_what_is_not_its_own(tmp_path: Path, message: FromAgent) -> None:
    """The launch fails with a reason, also where a node does not do what ours does."""

    async def test() -> None:
        crew = Crew([Place(0, "id", "node-a", "192.0.2.1")], lambda reason: None)
        spec = GroupSpec((RankSpec(load_message(tmp_path, "h.py:handle"), {}),), 1, 1, 1)
        generation = RemoteGeneration(1, spec, GroupPlacement("p", (Share("node-a", "192.0.2.1", (0,)),)), crew)
        door = cast(Door, ArrivedStreams(lambda: None))
        starting = asyncio.ensure_future(generation.start(door, 1, []))
        await asyncio.sleep(0)
        generation.received(0, message)
        with pytest.raises(ConnectionError, match="The agent on node node-a does not keep to the protocol"):
            await starting

    asyncio.run(asyncio.wait_for(test(), 120))
