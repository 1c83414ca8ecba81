"""What a method knows of its call, and how it answers a stream; also what the access log tells of the call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

REQUEST_ID = "x-request-id"

Metadata = Sequence[tuple[str, str | bytes]]


class Context(Protocol):
    """The part of `grpc.aio.ServicerContext` that the services use, and the name of the key that was given."""

    key_name: str

    def invocation_metadata(self) -> Any:
        """Metadata, or None."""

    def set_trailing_metadata(self, trailing_metadata: Any, /) -> None: ...

    def trailing_metadata(self) -> Any: ...

    def time_remaining(self) -> Any:
        """Seconds, or None where the client has set no deadline."""

    async def write(self, message: Any, /) -> None:
        """A response of a stream; waits for a client who reads slowly."""


class Call(NamedTuple):
    """What the access log tells of a call; `started` is a time.monotonic() instant."""

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


def request_id_in(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """Which admission has set; empty before."""
    return next((str(value) for key, value in metadata or () if key == REQUEST_ID), "")
