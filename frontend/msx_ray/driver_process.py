"""The driver as a child process: started, restarted when it ends, and stopped with the server."""

import asyncio
import contextlib
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from msx_core.module_command import module_command
from msx_protocol import encode_frame
from msx_protocol.channel import Channel
from msx_protocol.message import WireMessage
from msx_ray.messages import FromDriver, Unreachable

log = logging.getLogger("msx.cluster")

PAUSES = (1.0, 2.0, 5.0, 10.0)
"""Seconds before the driver that has ended is started again."""


LASTED = 60.0
"""Seconds after which a driver was not one of a row that fails."""

LONGEST_LINE = 8192
"""Characters of a line of the driver that stand in the log."""

LONGEST_WORDS = 500
"""Characters of a driver's last line that stand in the reason why nothing is placed."""

END_LIMIT = 10.0
"""Seconds that a driver has to end after its socket."""

ANEW = 75
"""The exit code of a driver whose cluster is back: it must be connected with anew, by another process."""


class _Output(asyncio.Protocol):
    """Output of Ray and of a driver that fails: its last line is `last_words`."""

    def __init__(self) -> None:
        self.last_words = ""

    def data_received(self, data: bytes) -> None:
        for line in data.decode(errors="replace").splitlines():
            log.debug("driver: %s", line[:LONGEST_LINE])
            self.last_words = line.strip()[:LONGEST_WORDS] or self.last_words


class DriverProcess:
    """`received` gets each message, on the loop's thread; `started` is called when a new driver takes messages."""

    def __init__(
        self, arguments: Sequence[str], received: Callable[[FromDriver], None], started: Callable[[], None]
    ) -> None:
        self._arguments = arguments
        self._received = received
        self._started = started
        self._channel: Channel[FromDriver] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._supervise(), name="cluster-driver")

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def send(self, message: WireMessage) -> None:
        """Send a message, or drop it while no driver runs: `started` tells when one does."""
        if self._channel is not None:
            self._channel.write(encode_frame(message))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _supervise(self) -> None:
        failed = 0
        while True:
            began = time.monotonic()
            code, last_words = await self._run()
            if time.monotonic() - began > LASTED:
                failed = 0
            if code == ANEW:
                failed = 0
                continue
            pause = PAUSES[min(failed, len(PAUSES) - 1)]
            failed += 1
            said = f" ({last_words.rstrip('.')})" if last_words and code > 0 else ""
            reason = f"The process that talks to Ray ended with code {code}{said}; it starts again after {pause:g} s."
            self._received(Unreachable(reason))
            await asyncio.sleep(pause)

    async def _run(self) -> tuple[int, str]:
        """One driver, until it has ended; returns its exit code, and the last line that it has printed."""
        ours, theirs = socket.socketpair()
        closed = asyncio.Event()
        command = [*module_command(sys.executable, "msx_ray.driver"), "--fd", str(theirs.fileno())]
        command += self._arguments
        process = self._process = subprocess.Popen(  # noqa: ASYNC220  # milliseconds, once
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        theirs.close()
        loop = asyncio.get_running_loop()
        try:
            channel = self._channel = Channel(
                FromDriver, lambda message, body: self._received(message), lambda error: closed.set()
            )
            await loop.create_unix_connection(lambda: channel, sock=ours)
            assert process.stdout is not None
            pipe, output = await loop.connect_read_pipe(_Output, process.stdout)
            self._started()
            await closed.wait()
        finally:
            self._channel = None
            channel.close()
            code = await asyncio.to_thread(_wait, process)
            await asyncio.sleep(0)  # a last look at what it has printed
            pipe.close()
            self._process = None
        return code, output.last_words


def _wait(process: subprocess.Popen[bytes]) -> int:
    """It ends by itself when its socket does: what waits in the cluster for this server is withdrawn first."""
    try:
        return process.wait(END_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
