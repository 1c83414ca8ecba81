"""One call of a client: what all kinds have in common."""

import asyncio
import time

from msx_core.held_bytes import Hold
from msx_core.request_ids import new_request_id
from msx_core.service_errors import ServiceError, SlowRequest
from msx_net.grpc.codes import Code
from msx_net.grpc.direct.blocks import HEAD, ok_trailers, trailers
from msx_net.grpc.direct.framing import framed
from msx_net.grpc.direct.head import CallHead
from msx_net.grpc.direct.open_calls import OpenCalls
from msx_net.grpc.metadata import REQUEST_ID
from msx_net.grpc.outcome import DEADLINE_EXCEEDED, Outcome, failure
from msx_net.grpc.served import ServedMethod
from msx_net.http2.stream import Stream
from msx_net.keys import ClientKey


class DirectCall:
    """Begins with its headers, and is over when the client has been told its outcome, or has left.

    It is what the access log writes a line of. `key` is the one that the headers name; None where none is asked for, or
    there is none.
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

    def __init__(
        self, calls: OpenCalls, stream: Stream, head: CallHead, served: ServedMethod, client: str, key: ClientKey | None
    ) -> None:
        self._calls = calls
        self._stream = stream
        self.head = head
        self.served = served
        self.client = client
        self.started = time.monotonic()
        self.id = "" if served.method.key is None else head.given_id or new_request_id()
        self.key_name = "" if key is None else key.name
        self.over = self._begun = False
        self._hold: Hold | None = None
        """Count of its bytes; public methods have one of their own."""
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
            self._close(Code.CANCELLED)
            self._cancel()

    def too_slow(self, reason: str) -> None:
        """A client that sends a stream of messages may take its time for each."""
        if not self.served.method.client_streams:
            self.fail(SlowRequest(reason))

    def _expired(self) -> None:
        self.stop(DEADLINE_EXCEEDED)

    # -- how it ends --

    def stop(self, outcome: Outcome) -> None:
        """Also what is done for the call; idempotent."""
        if not self.over:
            self.conclude(outcome)
            self._cancel()

    def fail(self, error: Exception) -> None:
        """The same, by an error."""
        if not self.over:
            self.stop(failure(error, self.served.service, self.id))

    def conclude(self, outcome: Outcome) -> None:
        """The last that the client is told; idempotent."""
        if self.over:
            return
        if outcome.response is not None:
            self._stream.send_whole(HEAD, framed(outcome.response), ok_trailers(self.id))
        else:
            own = ((REQUEST_ID, self.id),) if self.id else ()
            self._send_last(trailers(outcome.code, outcome.message, (*own, *outcome.metadata)))
        self._close(outcome.code)

    def _send_last(self, block: bytes) -> None:
        if self._begun:
            self._stream.send_trailers(block)
        else:
            self._stream.send_headers(HEAD + block, end=True)

    def _close(self, code: Code) -> None:
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

    def _count(self, size: int, times: int = 1) -> None:
        """The call holds so many bytes of the client, until it is over."""
        if self._hold is None:
            held = self._calls.held
            self._hold = (held if self.served.method.key is not None else held.public).hold()
        try:
            self._hold.resize(size, times)
        except ServiceError as error:
            self.fail(error)

    def _cancel(self) -> None:
        """Cancel the work for the call, which nobody needs any more."""
        raise NotImplementedError
