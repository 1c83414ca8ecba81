"""A rank that an agent has started on its node (`LaunchedRank`)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping

from msgspec import structs

from msx_frontend.plugins.launchers import ExitStatus, RankStatus
from msx_protocol import Load
from msx_ray.agent_messages import RankUsage
from msx_ray.agent_stream import AgentStream
from msx_ray.tls import UNACKNOWLEDGED


def broken(node: str, error: Exception | None) -> str:
    """Why what ran on the node is lost: a sentence without its full stop."""
    if error is None:
        return f"the agent on node {node} has ended"
    if isinstance(error, TimeoutError):
        return f"node {node} has not answered for {UNACKNOWLEDGED:g} s"
    return f"the connection with node {node} broke ({getattr(error, 'strerror', None) or error})"


class RemoteRank:
    """`kill` ends all ranks of its generation: they end as one anyway."""

    segments = None

    def __init__(
        self,
        host: str,
        pid: int,
        folders: Mapping[str, str],
        streams: Mapping[str, AgentStream],
        kill: Callable[[], None],
    ) -> None:
        """`folders`: what the folders of the server are called on the node."""
        self._host, self.pid, self._folders = host, pid, folders
        self.data, self.control = streams["data"], streams["control"]
        self.stdout, self.stderr = streams["stdout"], streams["stderr"]
        self._kill = kill
        self._memory = self._own = 0
        self.ended: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        self.cleared = asyncio.Event()
        """Nothing of it is left on its node."""

    def adapt(self, load: Load) -> Load:
        def there(folder: str | None) -> str | None:
            return folder and self._folders.get(folder, folder)

        return structs.replace(
            load, model_dir=there(load.model_dir), site_dir=there(load.site_dir), cache_dir=there(load.cache_dir)
        )

    def kill(self) -> None:
        self._kill()

    def cut(self, error: Exception) -> None:
        self.end(lost=broken(self._host, error))
        self.kill()

    def end(self, code: int = -signal.SIGKILL, lost: str = "") -> None:
        """It has ended. Idempotent."""
        self._memory = self._own = 0
        if not self.ended.done():
            self.ended.set_result(ExitStatus(code, lost))

    def report(self, usage: RankUsage) -> None:
        self._memory, self._own = usage.memory, usage.own_memory

    async def gone(self) -> None:
        await self.cleared.wait()
        for stream in (self.data, self.control, self.stdout, self.stderr):
            stream.close()

    def describe(self) -> RankStatus:
        pid = None if self.ended.done() else self.pid
        return RankStatus(host=self._host, pid=pid, memory=self._memory, own_memory=self._own)

    async def memory_taken(self) -> int:
        return self._own
