"""The jobs of one HTTP request: they end together, whoever ends first."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

import msgspec

from msx_frontend.errors import RequestCancelled
from msx_frontend.generation.errors import InvalidReply
from msx_frontend.job import Field, Job, StatusMappedJob, StatusOf
from msx_frontend.models.model_version import ModelVersion
from msx_frontend.models.registry import Registry
from msx_frontend.net.http.call import Call
from msx_frontend.queueing.reply_buffer import ReplyBuffer
from msx_sdk.generation._wire import encode

MESSAGE_PACK = "application/msgpack"

M = TypeVar("M", bound=msgspec.Struct)


class TimedReply(ReplyBuffer):
    """Knows when each chunk came, so that a slow client does not make the model look slow."""

    __slots__ = ("_loop", "_scheduled", "arrivals", "on_turn", "timed")

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self.arrivals: deque[float] = deque()
        self.timed: Job | None = None
        """Whose times are told."""
        self.on_turn: Callable[[], None] | None = None
        """Called once for all that came in one turn of the loop, in place of waking whoever waits."""

    @property
    def queue_seconds(self) -> float:
        return max(self.timed.started - self.timed.enqueued, 0.0) if self.timed is not None else 0.0

    def chunk(self, data: bytes) -> None:
        self.arrivals.append(time.monotonic())
        super().chunk(data)

    def close(self) -> None:
        self.on_turn = self.timed = None
        super().close()

    def _wake(self) -> None:
        if self.on_turn is None:
            super()._wake()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self.on_turn is not None:
            self.on_turn()


class Jobs:
    """Submits the operations of one call. `cancel` ends them all, now and to come: the client has left.

    `told` is the status of an error in the call's API.
    """

    def __init__(self, registry: Registry, call: Call, told: StatusOf) -> None:
        self._registry, self._call, self._told = registry, call, told
        self._replies: list[TimedReply] = []
        self._left = False

    def submit(self, version: ModelVersion, operation: str, message: msgspec.Struct) -> TimedReply:
        """Raises ServiceError when the job cannot be taken, or the call's key is for other models."""
        if self._left:
            raise RequestCancelled
        self._call.check_model(version.source.name)
        number = len(self._replies)
        reply = TimedReply()
        job = StatusMappedJob(
            self._told,
            f"{self._call.id}-{number}" if number else self._call.id,
            version.source.name,
            version.source.version,
            [Field("body", MESSAGE_PACK, encode(message))],
            list(self._call.headers()),
            reply,
            kind=operation,
        )
        self._registry.submit(job)
        reply.job = reply.timed = job
        self._replies.append(reply)
        return reply

    async def ask(self, version: ModelVersion, operation: str, message: msgspec.Struct, kind: type[M]) -> M:
        """An operation whose answer is one message. Raises InvalidReply for anything else."""
        reply = self.submit(version, operation, message)
        try:
            data = b"".join([chunk async for chunk in reply])
            return msgspec.msgpack.decode(data, type=kind)
        except msgspec.DecodeError as error:
            raise InvalidReply(version.source.name, kind.__name__, error) from None
        finally:
            reply.close()

    def cancel(self) -> None:
        self._left = True
        for reply in self._replies:
            if reply.job is not None:
                reply.job.cancel()

    def close(self) -> None:
        """Nothing is left running. Idempotent."""
        self._left = True
        for reply in self._replies:
            reply.close()
