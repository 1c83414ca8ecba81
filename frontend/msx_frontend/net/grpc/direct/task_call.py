"""A call that a coroutine answers, in a task of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from msx_frontend.errors import RequestCancelled, ServiceError
from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.context import Metadata, request_id_in
from msx_frontend.net.grpc.direct.blocks import HEAD, trailers
from msx_frontend.net.grpc.direct.call import DirectCall
from msx_frontend.net.grpc.direct.calls import Calls
from msx_frontend.net.grpc.direct.framing import framed
from msx_frontend.net.grpc.direct.head import CallHead
from msx_frontend.net.grpc.direct.refused import Refused
from msx_frontend.net.grpc.direct.requests import Requests
from msx_frontend.net.grpc.direct.served import ServedMethod
from msx_frontend.net.grpc.whole_answer import ResponseTooLarge
from msx_frontend.net.http2.stream import Stream
from msx_frontend.queueing.notifier import Notifier

log = logging.getLogger("msx.grpc")


class TaskCall(DirectCall):
    """The Context of its method. When the client leaves, or the deadline passes, the task is cancelled at once."""

    __slots__ = ("_drained", "_requests", "_task", "_trailing", "_untaken")

    def __init__(self, calls: Calls, stream: Stream, head: CallHead, served: ServedMethod, client: str) -> None:
        super().__init__(calls, stream, head, served, client)
        self._requests = Requests(served.method.parse, head.encoding, calls.limit, self._consumed)
        self._untaken = 0
        """Bytes of messages that the method has not taken. In a stream of them its service refuses each by itself: the
        call ends only where twice as much is held as may be."""
        self._trailing: Metadata = ()
        self._drained = Notifier()
        self._task: asyncio.Task[None] | None = None

    # -- what the stream says --

    def data(self, data: bytes) -> None:
        if not self.over:
            self._untaken += len(data)
            self._holds(self._untaken, 2 if self.served.method.client_streams else 1)
        if not self.over:
            self._requests.feed(data)
            self._begin()

    def _consumed(self, size: int) -> None:
        """A message was taken: whoever makes a job of it counts its bytes from now on."""
        self._stream.consumed(size)
        self._untaken -= size
        if not self.over:
            self._holds(self._untaken)

    def ended(self) -> None:
        self._requests.end()
        self._begin()

    def _begin(self) -> None:
        """Not earlier: grpc.aio's clients take a status that overtakes their first message for a broken transport."""
        if self._task is None and not self.over:
            self._task = self._calls.start(self._run())

    def drained(self) -> None:
        self._drained.notify()

    # -- the method --

    async def _run(self) -> None:
        try:
            await self._answer()
        except ServiceError as error:
            self.fail(error)
        except Refused as refused:
            self.refuse(refused)
        except asyncio.CancelledError:
            self.refuse(Refused(Code.CANCELLED, "The call was cancelled."))
            raise
        except Exception as error:
            log.exception("a bug of the server", extra={"request_id": self._own_id()})
            self.refuse(Refused(Code.UNKNOWN, f"Unexpected {type(error)}: {error}"))

    async def _answer(self) -> None:
        method = self.served.method
        request = self._requests if method.client_streams else await self._requests.only()
        response = await method.answer(request, self)
        if self.over:
            return
        block = trailers(Code.OK, "", self._metadata())
        if method.server_streams:
            self._say(block)
        else:
            self._stream.send_whole(HEAD, self._framed(response), block)
        self._end(Code.OK)

    def _framed(self, response: Any) -> bytes:
        message = self.served.method.serialize(response)
        if len(message) > self._calls.response_limit:
            raise ResponseTooLarge(self._calls.response_limit)
        return framed(message)

    def _end(self, code: Code) -> None:
        self.id = self._own_id()
        super()._end(code)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _metadata(self) -> list[tuple[str, str]]:
        return [(key, str(value)) for key, value in self._trailing]

    def _own_id(self) -> str:
        return request_id_in(self._trailing)

    # -- Context --

    def invocation_metadata(self) -> Metadata:
        return self.head.metadata()

    def set_trailing_metadata(self, trailing_metadata: Metadata, /) -> None:
        self._trailing = trailing_metadata

    def trailing_metadata(self) -> Metadata:
        return self._trailing

    def time_remaining(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)

    async def write(self, message: Any, /) -> None:
        """Raises RequestCancelled when nobody hears it any more."""
        if self.over:
            raise RequestCancelled
        data = self._framed(message)
        if not self._begun:
            self._begun = True
            self._stream.send_headers(HEAD)
        self._stream.send_data(data)
        while self._stream.blocked:
            await self._drained.wait()
