"""Processes that tokenize very long texts.

A tokenizer takes seconds for a text of some megabytes, keeps some hundred megabytes of memory afterwards, and cannot be
interrupted. So that happens in a process, which has a lower priority than the worker, ends with the request that it
works for if that one is cancelled, and with its memory when there is nothing more to do for it.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, TypeVar

import msgspec

from msx_core.chat_templates.request_template import plain_environment
from msx_core.generation.long_texts import slices_of
from msx_llm.text.text_calls import (
    HEAD,
    TextCall,
    TextDone,
    TextFiles,
    answers,
    head_of,
    length_in,
    message_limit,
    packed,
)
from msx_sdk.errors import InvalidInput, PredictionError

R = TypeVar("R")

AT_ONCE = 2
IDLE = 30.0
"""Seconds for which a process waits for another text."""
UNAVAILABLE = 503
PROGRAM = "msx_llm.text_program"
"""The module that the process runs; it knows the files and calls of all kinds of models."""


class TextProcess:
    """One process, and one call at a time. It is started by the constructor, on the main thread: the kernel ends it
    with the thread that has started it."""

    def __init__(self, files: TextFiles[Any], most: int) -> None:
        first = packed(files, most)
        own, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, str(os.getpid()), str(most)],
                stdin=its.fileno(),
                stdout=its.fileno(),
                env=plain_environment(),
            )
        own.setblocking(False)
        self._socket, self._first, self._most = own, first, most

    async def call(self, call: TextCall[Any, R]) -> R:
        """Raises what the answer raises, PredictionError 503 if the process ends, and 413 for a call or an answer that
        is too large."""
        loop, first, self._first = asyncio.get_running_loop(), self._first, b""
        try:
            await loop.sock_sendall(self._socket, first)
            await self._send(loop, call)
            answer = answers.decode(await self._message(loop))
        except OSError:
            raise PredictionError(UNAVAILABLE, self._end_reason()) from None
        if isinstance(answer, TextDone):
            value: R = msgspec.msgpack.decode(answer.value, type=call.result)
            return value
        error = answer.error()
        try:
            raise error
        finally:
            del error  # whose traceback has this frame, and with it the text

    def kill(self) -> None:
        self._socket.close()
        self._process.kill()
        threading.Thread(target=self._process.wait, daemon=True).start()  # its memory is freed first

    async def _send(self, loop: asyncio.AbstractEventLoop, call: TextCall[Any, Any]) -> None:
        """The texts that are generated go on between two slices."""
        slices = []
        for piece in slices_of(call):
            slices.append(piece)
            await asyncio.sleep(0)
        for piece in (head_of(sum(map(len, slices)), self._most), *slices):
            await loop.sock_sendall(self._socket, piece)

    async def _message(self, loop: asyncio.AbstractEventLoop) -> bytearray:
        size = length_in(await self._bytes(loop, HEAD), self._most)
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
    """Processes, `AT_ONCE` at most, started when they are needed. Of the calls that wait, those with the shortest text
    and those that came first take turns. `largest_body` as of `message_limit`."""

    def __init__(self, files: TextFiles[Any], largest_body: int) -> None:
        self._files, self._most = files, message_limit(largest_body)
        self._free: list[TextProcess] = []
        self._busy = 0
        self._waiting: dict[asyncio.Future[None], int] = {}
        """The sizes of their texts, in the order of arrival."""
        self._shortest = True
        self._idle: asyncio.TimerHandle | None = None

    async def call(self, call: TextCall[Any, R], size: int) -> R:
        """Raises as `TextProcess.call` does."""
        await self._turn(size)
        process = None
        try:
            process = self._free.pop() if self._free else started(self._files, self._most)
            value = await process.call(call)
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


def started(files: TextFiles[Any], most: int) -> TextProcess:
    """Raises PredictionError 503 where the system has no room for one."""
    try:
        return TextProcess(files, most)
    except OSError as error:
        reason = f"The process that tokenizes long texts cannot be started: {error}; send a shorter text."
        raise PredictionError(UNAVAILABLE, reason) from None
