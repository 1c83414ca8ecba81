"""One call as data: what is sent, and how the answer is read. Clients run it, synchronously or not."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from msx_client.address import Part

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Reply:
    """Reply over HTTP; `headers` by their names in small letters."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Decoder(Protocol[T_co]):
    """Makes pieces of what a stream brings."""

    def feed(self, data: bytes) -> Iterable[T_co]:
        """Raises MsxError for an error that the stream tells."""

    def end(self) -> None:
        """Raises MsxError for a stream that is not complete."""


@dataclass(frozen=True)
class HttpCall(Generic[T]):
    """`read` makes the result of the whole reply; of a stream `decoder` makes a reader of its pieces."""

    part: Part
    method: str
    path: str
    read: Callable[[Reply], T] | None = None
    decoder: Callable[[], Decoder[T]] | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""


@dataclass(frozen=True)
class RpcCall(Generic[T]):
    """Call over gRPC: the path of the method, its request, the class of its response, and how one is read."""

    part: Part
    method: str
    request: Any
    response: Any
    read: Callable[[Any], T]


Call = HttpCall[T] | RpcCall[T]
