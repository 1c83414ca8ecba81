"""The ranks of one generation that run on this node: processes, and their streams to the server."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msx_frontend.plugins.ranks import THREADS, LocalRank, ProcessSpec, python_path, start_rank
from msx_protocol.message import WireMessage
from msx_ray.agent.relay import Relay
from msx_ray.agent_messages import RANK_STREAMS, Begin, Ended, Hello, RankStart, RankUsage, Started
from msx_ray.dial import DialTarget, dial

USAGE_EVERY = 1.0


class RankProcess:
    """One rank. `tell` sends the server a message."""

    def __init__(self, begin: Begin, start: RankStart, server: DialTarget, tell: Callable[[WireMessage], None]) -> None:
        self._begin, self._start, self._server, self._tell = begin, start, server, tell
        self._process: LocalRank | None = None
        self._end: asyncio.Task[None] | None = None

    async def start(self, python: str, env: Mapping[str, str], work_dir: Path, plan_fds: Sequence[int]) -> None:
        """Raises OSError; then nothing is left but connections, which the server closes."""
        far = {name: Relay.pair(self.kill) for name in RANK_STREAMS}
        for name, (_, network) in far.items():
            hello = Hello(self._begin.key, name, rank=self._start.rank)
            await dial(self._server, hello, network)
        process = self._process = start_rank(ProcessSpec(python, env=env, work_dir=work_dir, plan_fds=plan_fds))
        self._end = asyncio.create_task(self._watch(process))
        for name, (near, _) in far.items():
            await getattr(process, name).connect(near)
        self._tell(Started(self._begin.generation, self._start.rank, process.pid))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    async def gone(self) -> None:
        if self._end is not None:
            await self._end

    async def _watch(self, process: LocalRank) -> None:
        usage = asyncio.create_task(self._report(process))
        status = await process.ended
        usage.cancel()
        await process.gone()
        self._tell(Ended(self._begin.generation, self._start.rank, status.code))

    async def _report(self, process: LocalRank) -> None:
        while True:
            memory, taken = process.describe().memory, await process.memory_taken()
            self._tell(RankUsage(self._begin.generation, self._start.rank, memory, taken))
            await asyncio.sleep(USAGE_EVERY)


class PlanSockets:
    """Descriptors of the plan streams by rank: direct between ranks of this node, else through a relay."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._fds: dict[int, list[int]] = {}

    def direct(self, rank: int) -> None:
        """Make the stream between rank 0 and another one of this node."""
        first, other = self._pair()
        self._fds.setdefault(0, []).append(first.fileno())
        self._fds[rank] = [other.fileno()]

    async def relayed(self, rank: int, near: Relay) -> None:
        """`rank`: whose end is on this node; the other end is beyond `near`'s other side."""
        mine, relayed = socket.socketpair()
        self._stack.enter_context(mine)
        self._fds.setdefault(rank, []).append(mine.fileno())
        await asyncio.get_running_loop().create_unix_connection(lambda: near, sock=relayed)

    def of(self, rank: int) -> Sequence[int]:
        return self._fds.get(rank, ())

    def close(self) -> None:
        """The processes have inherited them."""
        self._stack.close()

    def _pair(self) -> tuple[socket.socket, socket.socket]:
        first, other = socket.socketpair()
        return self._stack.enter_context(first), self._stack.enter_context(other)


def rank_environment(
    start: RankStart, meeting: Mapping[str, str], devices: Mapping[str, str], model_dir: str
) -> dict[str, str]:
    """The node's own environment, less what Ray has set for its actor, and what the server says of the rank.

    `devices`: what shows the share's devices.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_") and name != THREADS}
    env["PYTHONPATH"] = python_path(env, Path(model_dir))
    return {**env, **devices, **start.env, **meeting}
