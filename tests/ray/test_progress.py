"""The work of an agent before its ranks can be started stands in describe."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from msx_frontend.workers.group import WorkerGroup
from msx_frontend.workers.launcher import GroupSpec, LaunchedRank
from msx_ray.agent_messages import Progress, Ready
from msx_ray.remote_generation import RemoteGeneration
from tests.frontend.workers.fake_launcher import spec_of


def test_a_fetch_is_the_phase_of_the_ranks() -> None:
    """From the agent's message to describe, and back to the start of the process."""
    links: Any = [SimpleNamespace(place=SimpleNamespace(node="node-b"))]
    crew: Any = SimpleNamespace(links=links, begin=lambda generation: None)
    placement: Any = SimpleNamespace(shares=[SimpleNamespace(ranks=(0,))])
    events: Any = SimpleNamespace(group_ended=lambda group: None)
    group: Any = None
    seen: list[Any] = []

    class Launcher:
        async def launch(self, spec: GroupSpec) -> list[LaunchedRank]:
            generation = RemoteGeneration(1, spec, placement, crew)
            for message in (Progress(1, "fetching the archive: 1 MiB of 2 MiB"), Ready(1, [], "", 2)):
                generation.received(0, message)
                seen.append(group.ranks[0].describe()["phase"])
            raise OSError("enough")

    async def run() -> None:
        nonlocal group
        group = WorkerGroup(spec_of(), Launcher(), events)
        await group.start()

    asyncio.run(run())
    assert seen == ["fetching the archive: 1 MiB of 2 MiB (on node-b)", "starting the process"]
