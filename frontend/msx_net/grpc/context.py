"""View of a call for its method, which also answers a stream by it; the access log's view of a call."""

from typing import Any, NamedTuple, Protocol

from msx_net.grpc.admission import Admitted


class CallContext(Protocol):
    admitted: Admitted

    @property
    def deadline(self) -> float | None:
        """A time.monotonic() instant; None where the client has set none."""

    async def write(self, message: Any, /) -> None:
        """A response of a stream; waits for a client that reads slowly.

        Raises ResponseTooLarge, and RequestCancelled when the client has left.
        """


class Call(NamedTuple):
    """Call as the access log reads it; `started` is a time.monotonic() instant."""

    client: str
    target: str
    id: str
    started: float
    method: str = "gRPC"
    protocol: str = "HTTP/2.0"
    key_name: str = ""


class LogsCalls(Protocol):
    def write(self, call: Any, status: int) -> None:
        """`call` has the fields of Call; `status` is the number of gRPC's status code: 0 is OK."""
