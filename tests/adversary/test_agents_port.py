"""The cluster's port for agents, to which thousands without its key come again and again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from msx_ray.source_limits import OF_AGENT, SILENT, SPEAKING
from tests.adversary.agents_port import Told
from tests.ray.crowd import crowd

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

CROWDED = 5.0
"""Seconds before the agent is started."""
EVERY = 0.05
LARGEST = 64 << 20
"""Bytes by which the resident memory may grow: a TLS connection takes some 100 KB, so that a thousand more are seen."""
LONGEST = 0.5
"""Seconds of processor time that a turn of the loop may take."""
OWN = 32
"""Descriptors of the agent that comes, of its group and of what the process opens to start them."""


class Most:
    """The highest figures of a process."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.descriptors, self.memory = 0, 0

    def look(self) -> None:
        self.descriptors = max(self.descriptors, self._process.num_fds())
        self.memory = max(self.memory, self._process.memory_info().rss)

    async def go_on(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(EVERY)


@asynccontextmanager
async def port_of_agents(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    command = [sys.executable, "-m", "tests.adversary.agents_port", str(folder)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def crowded(folder: Path) -> tuple[Told, Most, Most]:
    """With the figures before the crowd, and the highest ones since."""
    async with port_of_agents(folder) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        before, most = Most(process.pid), Most(process.pid)
        before.look()
        looking = asyncio.create_task(most.go_on())
        async with crowd(port, 2000, 100, "127.0.0.7"):
            await asyncio.sleep(CROWDED)
            process.stdin.write(b"start\n")
            line = await process.stdout.readline()
            assert line, "the agent did not come in"
            told = msgspec.json.decode(line, type=Told)
        looking.cancel()
        after = Most(process.pid)
        after.look()
        assert after.descriptors <= before.descriptors
    return told, before, most


def test_an_agent_with_the_key_comes_in(tmp_path: Path) -> None:
    """From another address than 2,000 silent and 100 speaking connections; its group serves."""
    told, before, most = asyncio.run(crowded(tmp_path))
    assert told.ranks == 1
    assert most.descriptors - before.descriptors <= SILENT + SPEAKING + 2 * OF_AGENT + OWN
    assert most.memory - before.memory <= LARGEST
    assert told.longest <= LONGEST
    assert list((tmp_path / "node" / "run").glob("*")) == []
