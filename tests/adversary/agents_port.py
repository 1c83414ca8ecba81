"""A port for agents in a process of its own, so that what a crowd costs it can be measured.

`python -m tests.adversary.agents_port FOLDER` launches a group on a node of this machine, and prints the port that its
agent is to come to. The agent starts at the first line of the standard input. Then it prints a `Told`, and ends with
its input.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import uvloop

from msx_ray.launcher import ClusterLauncher
from msx_ray.reservation import Reservation
from tests.ray.agents import AgentCluster
from tests.ray.crowd import HERE
from tests.ray.test_launcher import group_on, told_by

TICK = 0.01
"""Seconds between two looks at the loop's processor time."""
JOIN = 60.0
"""Seconds that the agent has, the time until it is started included."""


class Told(msgspec.Struct):
    ranks: int
    """Ranks of the group, as its handler knows them."""
    longest: float
    """Seconds of processor time that the loop was held between two ticks."""


class LateCluster(AgentCluster):
    """Its agents are started when a line is read."""

    def start_agents(self, reservation: Reservation, addresses: Sequence[str], port: int, key: str, pin: str) -> None:
        print(port, flush=True)
        start = partial(super().start_agents, reservation, addresses, port, key, pin)
        asyncio.get_running_loop().add_reader(sys.stdin, self._line_is_there, start)

    def _line_is_there(self, start: Callable[[], None]) -> None:
        asyncio.get_running_loop().remove_reader(sys.stdin)
        os.set_blocking(sys.stdin.fileno(), True)  # which uvloop has changed
        sys.stdin.readline()
        start()


class Turns:
    """The longest turn of the loop, by the processor time of its thread, which does not depend on other processes."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._before = time.thread_time()

    def tick(self) -> None:
        now = time.thread_time()
        self.longest, self._before = max(self.longest, now - self._before), now
        asyncio.get_running_loop().call_later(TICK, self.tick)


async def launched(folder: Path) -> Told:
    """Returns when nothing is left of it."""
    cluster, turns = LateCluster(folder), Turns()
    reservation = cluster.place([1])
    spec = group_on(reservation, folder)
    turns.tick()
    try:
        answer = await told_by(spec, await ClusterLauncher(cluster, HERE, JOIN).launch(spec))
    finally:
        reservation.release()
        await asyncio.to_thread(cluster.ended)
    return Told(answer["of"], turns.longest)


if __name__ == "__main__":
    print(msgspec.json.encode(uvloop.run(launched(Path(sys.argv[1])))).decode(), flush=True)
    sys.stdin.read()
