"""A call whose key is not good, or has been used too often."""

from msx_net.grpc.direct.call import DirectCall
from msx_net.grpc.direct.head import CallHead
from msx_net.grpc.direct.open_calls import OpenCalls
from msx_net.grpc.served import ServedMethod
from msx_net.http2.stream import Stream
from msx_net.keys import ClientKey


class RefusedCall(DirectCall):
    """Refused by its headers. Its client is told so as soon as a byte of a message comes, and none is kept.

    Not earlier: grpc.aio's clients take a status that overtakes their first message for a broken transport.
    """

    __slots__ = ("_error",)

    def __init__(
        self,
        calls: OpenCalls,
        stream: Stream,
        head: CallHead,
        served: ServedMethod,
        client: str,
        key: ClientKey | None,
        error: Exception,
    ) -> None:
        super().__init__(calls, stream, head, served, client, key)
        self._error = error

    def data(self, data: bytes) -> None:
        self.fail(self._error)

    def ended(self) -> None:
        self.fail(self._error)

    def too_slow(self, reason: str) -> None:
        """A client that sends a stream of messages is not waited for, either."""
        self.fail(self._error)

    def drained(self) -> None:
        """The answer is a header block: nothing waits for it."""

    def _cancel(self) -> None:
        """Nothing is done for the call."""
