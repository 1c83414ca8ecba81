"""The line between a frontend and the one that follows it: one asks for worker groups, the other one gives them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import NamedTuple

from msx_frontend.supervision.wire import Message, close_all, receive, send

log = logging.getLogger("msx.workers")

TAKE, END, COUNTS, BEGUN = "take", "end", "counts", "begun"
"""Requests of the frontend that follows: a group as it runs; that it ends, because another one takes its place; what
the metrics have counted, which the one before tells it, too, from then on; and that it has all that it wants."""
PATIENCE = 10.0
"""Seconds for the rest of a message that has begun, and for one to be taken: the loop waits meanwhile."""


class LineMessage(NamedTuple):
    """The descriptors are the receiver's."""

    members: Message
    descriptors: Sequence[int] = ()


Answer = Callable[[Message], Awaitable[LineMessage]]
"""Answers a message. Its descriptors are closed when they are sent."""


class LineEnded(Exception):
    """The other frontend has ended."""


async def nothing(message: Message) -> LineMessage:
    return LineMessage({})


class HandoverLine:
    """Both ends are alike: any number of questions may be open."""

    def __init__(self, sock: socket.socket, answer: Answer = nothing) -> None:
        sock.settimeout(PATIENCE)
        self._sock, self._answer = sock, answer
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[LineMessage]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Resolved when the other frontend has ended."""
        self._loop.add_reader(sock.fileno(), self._readable)

    async def ask(self, **members: object) -> LineMessage:
        """Raises LineEnded."""
        if self.ended.done():
            raise LineEnded
        number = next(self._numbers)
        answered: asyncio.Future[LineMessage] = self._loop.create_future()
        self._asked[number] = answered
        self._send({"asked": number, **members}, ())
        return await answered

    def close(self) -> None:
        """Idempotent."""
        if not self.ended.done():
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()
            self.ended.set_result(None)
            for task in self._tasks:
                task.cancel()
            for answered in self._asked.values():
                if not answered.done():
                    answered.set_exception(LineEnded())

    def _readable(self) -> None:
        try:
            message, descriptors = receive(self._sock)
        except (OSError, EOFError, ValueError):
            self.close()
            return
        if (number := message.get("answers")) is not None:
            self._answered(number, LineMessage(message, descriptors))
        else:
            close_all(descriptors)
            task = self._loop.create_task(self._answers(message), name="handover-line")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _answered(self, number: int, message: LineMessage) -> None:
        answered = self._asked.pop(number, None)
        if answered is None or answered.done():
            close_all(message.descriptors)
        else:
            answered.set_result(message)

    async def _answers(self, message: Message) -> None:
        try:
            members, descriptors = await self._answer(message)
        except Exception:
            log.exception("the frontend that follows cannot be answered")
            members, descriptors = {}, ()
        try:
            self._send({"answers": message.get("asked"), **members}, descriptors)
        finally:
            close_all(descriptors)

    def _send(self, message: Message, descriptors: Sequence[int]) -> None:
        if not self.ended.done():
            with contextlib.suppress(OSError):
                send(self._sock, message, descriptors)
                return
            self.close()
