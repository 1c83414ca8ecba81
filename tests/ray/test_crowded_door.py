"""An agent with the key connects while thousands without it come again and again."""

from __future__ import annotations

import asyncio

import psutil
import pytest

from msx_ray.agent_messages import Hello
from msx_ray.certificate import make_identity
from msx_ray.dial import DialTarget, dial
from msx_ray.door import Door
from msx_ray.source_limits import SILENT, SPEAKING, SourceLimits
from msx_ray.tls import server_context
from tests.loops import run
from tests.ray.crowd import HERE, crowd

STREAMS = 5
SPEAKERS = SPEAKING + STREAMS + 10
"""More than there is room for."""
NOISE = 10
"""Descriptors that the test's own process may open meanwhile."""


async def comes_in(*crowds: str, agents: tuple[str, ...] = ()) -> None:
    """All streams of an agent at 127.0.0.1 come, beside 2,000 silent and 79 speaking connections of these addresses, of
    which nothing is left."""
    identity, limits, process = make_identity(), SourceLimits(), psutil.Process()
    door = Door(server_context(identity), [("data", rank) for rank in range(STREAMS)], agents=agents, limits=limits)
    port = await door.open(HERE)
    target, before = DialTarget([HERE], port, identity.pin), process.num_fds()
    mine: list[asyncio.Protocol] = []
    async with crowd(port, 2000, SPEAKERS, *crowds):
        for rank in range(STREAMS):
            mine.append(await dial(target, Hello(door.key, "data", rank=rank), asyncio.Protocol()))
            assert process.num_fds() - before <= SILENT + SPEAKING + 2 * len(mine) + 6 + NOISE
    assert len(mine) == len(await door.arrived)
    door.close()
    assert (len(limits.silent), limits.silent.places) == (0, SILENT)
    assert (len(limits.speaking), limits.speaking.places) == (0, SPEAKING)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_of_another_address(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: no second try is needed."""
    monkeypatch.setattr("msx_ray.dial.PAUSES", ())
    run(comes_in("127.0.0.7"), loop)


def test_of_many_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """One connection of each is as many as the agent has: room is kept for nodes that Ray names."""
    monkeypatch.setattr("msx_ray.dial.PAUSES", ())
    run(comes_in(*(f"127.0.1.{host}" for host in range(1, 201)), agents=(HERE,)), "uvloop")


def test_of_the_address_of_a_node() -> None:
    run(comes_in(HERE, agents=(HERE,)), "uvloop")
