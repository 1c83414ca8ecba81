"""Processes that tokenize very long texts.

A tokenizer takes seconds for a text of some megabytes, keeps some hundred megabytes of memory afterwards, and cannot be
interrupted. So that happens in a process, which has a lower priority than the worker, ends with the request that it
works for if that one is cancelled, and with its memory when there is nothing more to do for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msx_backend.llm.text.request_template import plain_environment
from msx_sdk._internal.orphan import die_with_parent
from msx_sdk.errors import InvalidInput, PredictionError

AT_ONCE = 2
NICENESS = 10
"""Added to the worker's: a tenth of its share of a processor that both want."""
IDLE = 30.0
"""Seconds for which a process waits for another text."""
HEAD = 8
"""Bytes of a message's length, before the message."""
UNAVAILABLE = 503


class TextProcess:
    """One process, and one call at a time. It is started by the constructor, on the main thread: the kernel ends it
    with the thread that has started it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        own, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(os.getpid())],
                stdin=its.fileno(),
                stdout=its.fileno(),
                env=plain_environment(),
            )
        own.setblocking(False)
        self._socket, self._first = own, packed(make)

    async def call(self, name: str, request: object) -> Any:
        """Raises what the function raises, and PredictionError 503 if the process ends."""
        loop, first, self._first = asyncio.get_running_loop(), self._first, b""
        try:
            await loop.sock_sendall(self._socket, first)
            await loop.sock_sendall(self._socket, packed((name, request)))
            done, value = pickle.loads(await self._message(loop))  # noqa: S301  of this program's own process
        except OSError:
            raise PredictionError(UNAVAILABLE, self._end_reason()) from None
        if done:
            return value
        try:
            raise value
        finally:
            del value  # whose traceback has this frame, and with it the text

    def kill(self) -> None:
        self._socket.close()
        self._process.kill()
        threading.Thread(target=self._process.wait, daemon=True).start()  # its memory is freed first

    async def _message(self, loop: asyncio.AbstractEventLoop) -> bytearray:
        size = int.from_bytes(await self._bytes(loop, HEAD), "little")
        return await self._bytes(loop, size)

    async def _bytes(self, loop: asyncio.AbstractEventLoop, size: int) -> bytearray:
        data = bytearray(size)
        rest = memoryview(data)
        while rest:
            count = await loop.sock_recv_into(self._socket, rest)
            if not count:
                raise ConnectionResetError
            rest = rest[count:]
        return data

    def _end_reason(self) -> str:
        """Its sockets are closed: it has ended, or is about to."""
        status = self._process.wait()
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"The process that tokenizes long texts {how}, perhaps for want of memory; send a shorter text."


class TextProcesses:
    """At most `AT_ONCE` processes, started when they are needed. Of the calls that wait, those with the shortest text
    and those that came first take turns."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._free: list[TextProcess] = []
        self._busy = 0
        self._waiting: dict[asyncio.Future[None], int] = {}
        """The sizes of their texts, in the order of arrival."""
        self._shortest = True
        self._idle: asyncio.TimerHandle | None = None

    async def call(self, name: str, request: object, size: int) -> Any:
        """Raises as `TextProcess.call` does."""
        await self._turn(size)
        process = None
        try:
            process = self._free.pop() if self._free else started(self._make)
            value = await process.call(name, request)
        except BaseException as error:  # it may be cancelled
            self._leave(process, alive=isinstance(error, InvalidInput))
            raise
        self._leave(process, alive=True)
        return value

    def close(self) -> None:
        """Ends the processes that wait. Those that work end with their calls, which are cancelled."""
        if self._idle is not None:
            self._idle.cancel()
        while self._free:
            self._free.pop().kill()

    async def _turn(self, size: int) -> None:
        if self._busy < AT_ONCE:
            self._busy += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = size
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had been given the place
                self._pass_on()
            raise
        finally:
            del self._waiting[turn]

    def _leave(self, process: TextProcess | None, *, alive: bool) -> None:
        if process is not None and alive:
            self._free.append(process)
        elif process is not None:
            process.kill()
        self._pass_on()

    def _pass_on(self) -> None:
        """Gives the place to the next call, or ends it."""
        if waiting := [turn for turn in self._waiting if not turn.done()]:
            turn = min(waiting, key=self._waiting.__getitem__) if self._shortest else waiting[0]
            self._shortest = not self._shortest
            turn.set_result(None)
            return
        self._busy -= 1
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE, self.close)


def started(make: Callable[[], Any]) -> TextProcess:
    """Raises PredictionError 503 where the system has no room for one."""
    try:
        return TextProcess(make)
    except OSError as error:
        reason = f"The process that tokenizes long texts cannot be started: {error}; send a shorter text."
        raise PredictionError(UNAVAILABLE, reason) from None


def packed(message: object) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(HEAD, "little") + data


def answer(texts: object, name: str, request: object) -> bytes:
    """The value, or what was raised."""
    try:
        return packed((True, getattr(texts, name)(request)))
    except PredictionError as error:
        return packed((False, error))
    except Exception as error:
        return packed((False, RuntimeError(f"{type(error).__name__}: {error}")))


def main() -> None:
    """The main function of such a process: reads calls from its standard input, a socket, and writes the answers."""
    die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    with contextlib.suppress(OSError):  # not everywhere: when memory is short, the kernel is to end this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    connection = socket.socket(fileno=0)
    with connection, connection.makefile("rb") as calls:
        make = pickle.loads(_message(calls))  # noqa: S301  of the worker, by a socket that nobody else has
        texts = make()
        while data := _message(calls):
            name, request = pickle.loads(data)  # noqa: S301
            connection.sendall(answer(texts, name, request))


def _message(calls: Any) -> bytes:
    """b"" if there is none."""
    data: bytes = calls.read(int.from_bytes(calls.read(HEAD), "little"))
    return data


if __name__ == "__main__":
    main()
