"""The process of one rank: a fresh interpreter with two inherited sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from msx_frontend.workers.channel import Channel
from msx_frontend.workers.confinement import FREE, Confinement
from msx_frontend.workers.output import WorkerOutput
from msx_frontend.workers.own_memory import own_memory
from msx_protocol import MetricSample, Pong, ToFrontend


class RankProcess:
    """Starts the worker and tells of its messages, its pongs and its end.

    `on_exit` is called once, with the exit code (negative: the signal), when the process has ended and all that it
    had written to its data socket has been read.
    """

    def __init__(
        self,
        labels: Mapping[str, Any],
        on_message: Callable[[ToFrontend, bytes], None],
        on_pong: Callable[[Pong], None],
        on_exit: Callable[[int], None],
        on_metric: Callable[[MetricSample], None] | None = None,
    ) -> None:
        self._on_exit = on_exit
        self._data: Channel[ToFrontend] = Channel(ToFrontend, on_message, self._data_closed)
        self._control: Channel[Pong] = Channel(Pong, lambda pong, _: on_pong(pong), lambda error: None)
        self._outputs = [WorkerOutput(dict(labels), name, on_metric) for name in ("stdout", "stderr")]
        self._read_all = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self.broken: Exception | None = None
        self.pid = 0

    async def spawn(
        self,
        env: Mapping[str, str],
        work_dir: Path,
        plan_fds: Sequence[int] = (),
        python: str = sys.executable,
        confinement: Confinement = FREE,
    ) -> None:
        """Raises OSError when the machine lets no process start; nothing is left then."""
        self._work_dir = work_dir
        work_dir.mkdir(parents=True)
        with ExitStack() as ours, ExitStack() as theirs:
            ours.callback(shutil.rmtree, work_dir, ignore_errors=True)
            confinement.furnish(work_dir)
            sockets = [_socket_pair(ours, theirs) for _ in range(2)]
            pipes = [_pipe(ours, theirs) for _ in self._outputs]
            for _, write in pipes:
                confinement.give(write)
            command = confinement.command(_command(python, [end.fileno() for _, end in sockets], plan_fds))
            fds = [*(end.fileno() for _, end in sockets), *plan_fds]
            self._process = _popen(command, fds, [write for _, write in pipes], env, work_dir)
            ours.pop_all()
        self.pid = self._process.pid
        self._watch = asyncio.create_task(self._watch_exit(), name=f"watch-{self.pid}")
        await self._data.open(sockets[0][0])
        await self._control.open(sockets[1][0])
        for output, (read, _) in zip(self._outputs, pipes, strict=True):
            await output.follow(read)

    def send(self, *frame: bytes | bytearray) -> None:
        self._data.write(*frame)

    def send_control(self, frame: bytes) -> None:
        self._control.write(frame)

    def kill(self) -> None:
        """SIGKILL to the worker and to whatever it has started. The end is told by `on_exit`."""
        if self._exists:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Returns when the process has been reaped and its working directory removed."""
        if self._watch is not None:
            await self._watch

    @property
    def last_words(self) -> str:
        """What it last said on stderr: for a crash, its cause."""
        return str(self._outputs[1].last_words)

    @property
    def memory(self) -> int:
        """Resident bytes; 0 when the process is gone."""
        try:
            return int(psutil.Process(self.pid).memory_info().rss) if self._exists else 0
        except psutil.Error:
            return 0

    @property
    def own_memory(self) -> int:
        """Bytes that are not of mapped files, which other processes share; 0 when the process is gone."""
        return own_memory(self.pid) if self._exists else 0

    @property
    def _exists(self) -> bool:
        """It has been started and not been reaped: its number is nobody else's."""
        return self.pid > 0 and self._process.returncode is None

    def _data_closed(self, error: Exception | None) -> None:
        self.broken = error
        self._read_all.set()
        if error is not None:
            self.kill()

    async def _watch_exit(self) -> None:
        await _process_end(self._process)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._read_all.wait(), 1.0)
        await asyncio.sleep(0)  # a last look at the pipes, which are read after the sockets
        self.kill()  # before it is reaped, while its process group cannot be somebody else's
        code = self._process.wait()
        self._data.close()
        self._control.close()
        for output in self._outputs:
            output.close()
        self._on_exit(code)
        await asyncio.to_thread(shutil.rmtree, self._work_dir, ignore_errors=True)


def _socket_pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, socket.socket]:
    end, other = socket.socketpair()
    return ours.enter_context(end), theirs.enter_context(other)


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    ours.callback(os.close, read)
    theirs.callback(os.close, write)
    return read, write


def _command(python: str, sockets: list[int], plans: Sequence[int]) -> list[str]:
    data, control = sockets
    command = [python, "-m", "msx_backend.worker", "--parent", str(os.getpid())]
    command += [f"--plan-fd={fd}" for fd in plans]
    return [*command, "--data-fd", str(data), "--control-fd", str(control)]


def _popen(
    command: list[str], fds: list[int], outputs: list[int], env: Mapping[str, str], work_dir: Path
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=outputs[0],
        stderr=outputs[1],
        pass_fds=fds,
        cwd=work_dir,
        env=dict(env),
        start_new_session=True,
    )


async def _process_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end without reaping."""
    try:
        fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or a kernel before 5.3
        await asyncio.to_thread(os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
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
