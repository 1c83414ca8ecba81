"""The process that reads NVML, as the server sees it: started at the first call, and anew after one that failed."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from typing import TypeVar

import msgspec

from msx_frontend.devices.nvidia import problems
from msx_frontend.devices.nvidia.library import PATH
from msx_frontend.devices.nvidia.messages import MOST_LINE, CallName, NvmlAnswer, NvmlCall
from msx_frontend.devices.nvidia.problems import UnreadableError

T = TypeVar("T")

START = "import sys; sys.path[:] = sys.argv[1:]; from msx_frontend.devices.nvidia.program import main; main()"
"""Program whose arguments are the paths of this interpreter: variables, folders and modules of others have no say
(`-I`)."""

FIRST_CALL = 3
"""So many times the limit for the first call of a process: where no other program has the GPUs open, the driver starts
each of them, which takes seconds."""

_END_LIMIT = 1.0
"""Seconds in which the process ends once its socket is closed, and again once it is killed; one that waits in the
kernel does neither."""


class NvmlProcess:
    """`library_path`: its LD_LIBRARY_PATH; `timeout`: seconds for each call. May be used from several threads."""

    def __init__(self, library_path: str, timeout: float) -> None:
        self._library_path, self._timeout = library_path, timeout
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._limit = timeout
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def ask(self, call: CallName, answer: type[T]) -> T:
        """The answer to one call. Raises UnreadableError."""
        with self._lock:
            connection = self._connected()
            try:
                line = _exchange(connection, msgspec.json.encode(NvmlCall(call)) + b"\n", self._limit)
            except TimeoutError:
                self._end()
                raise UnreadableError(problems.hangs(self._limit)) from None
            except OSError:
                raise UnreadableError(problems.ended(self._end())) from None
            self._limit = self._timeout
        read = msgspec.json.decode(line, type=NvmlAnswer)
        if read.code:
            raise UnreadableError(problems.failure(read.code, read.message))
        return msgspec.convert(read.result, answer, str_keys=True)

    def stop(self) -> None:
        """End the process; the next call starts another one."""
        with self._lock:
            self._end()

    def close(self) -> None:
        """End the process, also under a call that waits for it, and start no other."""
        self._closed = True
        if (connection := self._connection) is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.stop()

    def _connected(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self._end()  # another has killed it
        if self._connection is None and not self._closed:
            self._connection = self._start()
        if self._connection is None or self._closed:  # `close` looks for a connection once it has set the flag
            raise UnreadableError(problems.ended(self._end()))
        return self._connection

    def _start(self) -> socket.socket:
        if self._process is not None and self._process.poll() is None:
            raise UnreadableError(problems.still_hangs(self._process.pid))
        self._limit = FIRST_CALL * self._timeout
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = _program(theirs, self._library_path)
            except OSError as error:
                ours.close()
                raise UnreadableError(problems.not_started(error)) from error
        return ours

    def _end(self) -> int | None:
        """The exit code; None where there is no process, or it has not ended yet."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_END_LIMIT)
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_LIMIT)
        return self._process.returncode


def _program(connection: socket.socket, library_path: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-c", START, *filter(None, sys.path)],
        stdin=connection.fileno(),
        stdout=subprocess.DEVNULL,  # the library may print there
        env={PATH: library_path},
        cwd="/",
        start_new_session=True,  # Ctrl-C is for the server
    )


def _exchange(connection: socket.socket, call: bytes, limit: float) -> bytes:
    """The line that answers. Raises TimeoutError, or another OSError where the process has ended."""
    deadline = time.monotonic() + limit
    connection.settimeout(limit)
    connection.sendall(call)
    received = bytearray()
    while not received.endswith(b"\n"):
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        data = connection.recv(1 << 16)
        received += data
        if not data or len(received) > MOST_LINE:
            raise ConnectionError
    return bytes(received)
