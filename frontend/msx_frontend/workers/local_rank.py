"""One rank as a process of this machine: a fresh interpreter that inherits its sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
from pathlib import Path

import psutil

from msx_frontend.supervision.session import end_sessions
from msx_frontend.workers.launcher import ExitStatus, RankStatus
from msx_frontend.workers.local_streams import PipeStream, SocketStream
from msx_frontend.workers.own_memory import own_memory, own_memory_of_all
from msx_frontend.workers.segments.allowance import SegmentAllowance, SegmentSocket
from msx_frontend.workers.shared_files import noted, remove
from msx_frontend.workers.worker_process import WorkerProcess
from msx_protocol import Load

SHARED_EVERY = 5.0
"""Seconds between two looks at what the processes of a rank share."""
LAST_LOOK = 0.25
"""Seconds for the last look, when a rank ends or is killed: it and what it has started live no longer."""


class LocalRank:
    """See `LaunchedRank`. Owns the process and its working directory."""

    def __init__(
        self,
        process: WorkerProcess,
        work_dir: Path,
        *,
        data: SocketStream,
        control: SocketStream,
        stdout: PipeStream,
        stderr: PipeStream,
        segments: SegmentSocket | None = None,
        allowance: SegmentAllowance | None = None,
        release: str = "",
        old: bool = False,
    ) -> None:
        self.release, self.old = release, old
        self._process = process
        self.pid = process.pid
        self.work_dir = work_dir
        self.data = data
        self.control = control
        self.stdout = stdout
        self.stderr = stderr
        self.segments = segments
        self._allowance = allowance
        self._handed_over = False
        self._shared = set[Path]()
        self._end: asyncio.Task[set[Path]] | None = None
        self.ended: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        self._watch = asyncio.create_task(self._watch_end(), name=f"watch-{self.pid}")

    def adapt(self, load: Load) -> Load:
        """All folders are those of the server."""
        return load

    def cut(self, error: Exception) -> None:
        self.kill()

    def kill(self) -> None:
        """Stop the worker at once; kill it and all processes of its session after a last look at what they share. A
        worker that has not begun shares nothing, and does not end with its parent yet: it would stay stopped where this
        process is killed."""
        if self._exists:
            self._signal(signal.SIGSTOP if _has_begun(self.pid) else signal.SIGKILL)
            self._ending()

    def _signal(self, number: signal.Signals) -> None:
        if self._exists:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    def hand_over(self) -> None:
        """See `RankHandsOver`."""
        if self._end is not None:
            self._signal(signal.SIGKILL)  # another frontend would wait for one that is stopped
        self._handed_over = True
        self._watch.cancel()

    async def gone(self) -> None:
        """Returns when the process has been reaped and its working directory removed."""
        await asyncio.shield(self._watch)  # it goes on where nobody waits for it
        for stream in (self.data, self.control, self.stdout, self.stderr):
            stream.close()
        if self.segments is not None and self._allowance is not None:
            self.segments.end.close()
            self._allowance.put_back(self.segments.limits)
            self._allowance = None

    def describe(self) -> RankStatus:
        if not self._exists:
            return RankStatus(host=socket.gethostname())
        return RankStatus(
            host=socket.gethostname(),
            pid=self.pid,
            memory=_resident(self.pid),
            own_memory=own_memory(self.pid),
        )

    async def memory_taken(self) -> int:
        """Count on a thread: of what a rank has started, the kernel walks through all pages."""
        return await asyncio.to_thread(own_memory_of_all, self.pid) if self._exists else 0

    @property
    def _exists(self) -> bool:
        """It has not been reaped: its number is still its own."""
        return not (self._process.reaped or self._handed_over)

    async def _watch_end(self) -> None:
        await self._look_until_end()
        left = await asyncio.shield(self._ending())  # before it is reaped, while its session cannot be another one's
        self.ended.set_result(ExitStatus(code=self._process.reap()))
        await asyncio.to_thread(shutil.rmtree, self.work_dir, ignore_errors=True)
        await asyncio.to_thread(remove, left)

    async def _look_until_end(self) -> None:
        """Wait for the end, and note meanwhile what nobody would remove after a kill."""
        ending = asyncio.ensure_future(_process_end(self.pid))
        try:
            while not (await asyncio.wait({ending}, timeout=SHARED_EVERY))[0]:
                self._shared = await asyncio.to_thread(noted, self.pid, self._shared)
        finally:
            ending.cancel()

    def _ending(self) -> asyncio.Task[set[Path]]:
        """The end of all that it has started, which is one."""
        if self._end is None:
            self._end = asyncio.create_task(self._end_session(), name=f"end-{self.pid}")
            self._end.add_done_callback(lambda end: self._signal(signal.SIGKILL))  # also where the loop ends before it
        return self._end

    async def _end_session(self) -> set[Path]:
        """Returns what may be left of shared memory."""
        last = asyncio.create_task(asyncio.to_thread(noted, self.pid, self._shared))
        await asyncio.wait({last}, timeout=LAST_LOOK)
        self._signal(signal.SIGKILL)  # all threads may be busy
        await asyncio.to_thread(end_sessions, self.pid)
        return await last


def _has_begun(pid: int) -> bool:
    """Whether a worker ends with its parent: it asks the kernel for that before it starts its second thread."""
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:  # not Linux
        return True


def _resident(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


async def _process_end(pid: int) -> None:
    """Wait for the end without reaping."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, or a kernel before 5.3
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _resolve, ended)
    try:
        await ended
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
