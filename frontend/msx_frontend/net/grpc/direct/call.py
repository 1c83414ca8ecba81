"""One call of a client: what all kinds have in common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msx_frontend.errors import ServiceError
from msx_frontend.held_bytes import Hold
from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.direct.blocks import HEAD, trailers
from msx_frontend.net.grpc.direct.refused import Refused
from msx_frontend.net.grpc.status import metadata
from msx_frontend.net.http2.stream import Stream

if TYPE_CHECKING:
    from msx_frontend.net.grpc.direct.calls import Calls
    from msx_frontend.net.grpc.direct.head import CallHead
    from msx_frontend.net.grpc.direct.served import ServedMethod


class DirectCall:
    """Begins with its headers, is over with its status: said to the client, or not because it has left.

    It is what the access log writes a line of.
    """

    __slots__ = (
        "_begun",
        "_calls",
        "_hold",
        "_stream",
        "_timer",
        "client",
        "head",
        "id",
        "key_name",
        "over",
        "served",
        "started",
    )
    method, protocol = "gRPC", "HTTP/2.0"

    def __init__(self, calls: Calls, stream: Stream, head: CallHead, served: ServedMethod, client: str) -> None:
        self._calls, self._stream, self.head, self.served, self.client = calls, stream, head, served, client
        self.started = time.monotonic()
        self.id = self.key_name = ""
        self.over = self._begun = False
        self._hold: Hold | None = None
        """Of its bytes, where they are counted."""
        self._timer: asyncio.TimerHandle | None = None
        if head.timeout is not None:
            self._timer = asyncio.get_running_loop().call_later(head.timeout, self._expired)
        calls.open.add(self)

    @property
    def target(self) -> str:
        return self.served.target

    @property
    def deadline(self) -> float | None:
        """A time.monotonic() instant."""
        return None if self.head.timeout is None else self.started + self.head.timeout

    # -- what the stream says --

    def lost(self, reason: str) -> None:
        """The client has left."""
        if not self.over:
            self._end(Code.CANCELLED)
            self._stop()

    def _expired(self) -> None:
        self.refuse(Refused(Code.DEADLINE_EXCEEDED, "Deadline Exceeded"))  # grpc's words

    # -- how it ends --

    def refuse(self, refused: Refused) -> None:
        """The status of what did not go well; idempotent."""
        if not self.over:
            self._fail(refused.code, refused.message)
            self._stop()

    def fail(self, error: ServiceError) -> None:
        """The same, of what the server says of it; idempotent."""
        if not self.over:
            self._fail(self.served.code_of(error), self.served.details_of(error), metadata(error))
            self._stop()

    def _holds(self, size: int, times: int = 1) -> None:
        """So many bytes of the client, until the call is over."""
        if self._hold is None:
            self._hold = self._calls.held.hold()
        try:
            self._hold.resize(size, times)
        except ServiceError as error:
            self.fail(error)

    def _fail(self, code: Code, message: str, metadata: Iterable[tuple[str, str]] = ()) -> None:
        self._say(trailers(code, message, [*self._metadata(), *metadata]))
        self._end(code)

    def _say(self, block: bytes) -> None:
        """The last that the client hears."""
        stream = self._stream
        if self._begun:
            stream.send_trailers(block)
        else:
            stream.send_headers(HEAD + block, end=True)

    def _end(self, code: Code) -> None:
        self.over = True
        self._stream.events = None  # ends the reference cycle of the two
        self._calls.open.discard(self)
        if self._hold is not None:
            self._hold.release()
        if self._timer is not None:
            self._timer.cancel()
        access_log = self.served.access_log
        if access_log is not None:
            access_log.write(self, code.value)

    def _metadata(self) -> list[tuple[str, str]]:
        """The server's own, behind the status."""
        raise NotImplementedError

    def _stop(self) -> None:
        """What was done for it is done for nobody."""
        raise NotImplementedError
