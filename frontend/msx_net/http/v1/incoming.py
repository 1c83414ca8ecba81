"""One request as it arrives."""

from __future__ import annotations

import msgspec

from msx_core.service_errors import BadRequest, ServiceError
from msx_net.http.v1.errors import UnknownTransferCoding, VersionNotSupported
from msx_net.http.wire import RawHeaders

STEERING = frozenset((b"connection", b"expect", b"host", b"transfer-encoding"))
"""Headers that say how the request itself is read."""

MOST_PARTS, LARGE_PART = 64, 1 << 10
"""Parts of a body that are kept as they came, and the bytes from which on all are; others are joined, so that a million
small chunks cost no more."""


class IncomingRequest(msgspec.Struct, eq=False):
    """Its head, and the part of its body that was not taken yet. A struct is made without a call of ours."""

    method: bytes = b""
    url: bytes = b""
    version: str = "1.1"
    headers: RawHeaders = []
    """Names are in lower case."""
    hosts: int = 0
    codings: tuple[bytes, ...] = ()
    keeps_alive: bool = True
    expects_continue: bool = False
    """The client waits for `100 Continue` before it sends the body."""
    parts: list[bytes | bytearray] = []
    size: int = 0
    """Bytes of the body that have arrived."""
    held: int = 0
    """Bytes in `parts`, which were not taken yet."""
    is_watched: bool = True
    """Who answers it is told of each part of the body, not only of the last."""
    head_complete: bool = False
    complete: bool = False
    error: ServiceError | None = None
    """Why it cannot be read. There is no head, then."""

    # -- the head --

    def steer(self, name: bytes, value: bytes) -> None:
        """Read one of the STEERING headers but for `host`, which is counted in `hosts`."""
        if name == b"transfer-encoding":
            self.codings += (value.strip().lower(),)
        elif name == b"connection":
            self.keeps_alive = self.keeps_alive and b"close" not in value.lower()
        else:
            self.expects_continue = value.strip().lower() == b"100-continue"

    def finish_head(self, method: bytes, version: str) -> None:
        """Raises ServiceError for what the parser lets pass, and two servers may understand differently."""
        self.method, self.version, self.head_complete = method, version, True
        if version == "1.0":
            self.keeps_alive = self.expects_continue = False
            if self.codings:
                raise BadRequest("A request of HTTP/1.0 has no Transfer-Encoding.")
        elif version != "1.1":
            raise VersionNotSupported(version)
        elif self.hosts != 1:
            raise BadRequest(f"A request of HTTP/1.1 has one header Host, not {self.hosts} (RFC 9112, 3.2).")
        if self.codings and self.codings != (b"chunked",):
            raise UnknownTransferCoding
        if self.hosts > 1:
            raise BadRequest("A request has one header Host at most.")

    @property
    def is_chunked(self) -> bool:
        return bool(self.codings)

    @property
    def length(self) -> int | None:
        """Bytes of the body; None where its end is known only when it is there."""
        if self.codings:
            return None
        return next((int(value) for name, value in self.headers if name == b"content-length"), 0)

    # -- the body --

    @property
    def is_unread(self) -> bool:
        """A part of the body has not arrived."""
        return not self.complete and self.length != 0

    def add(self, data: bytes) -> None:
        if len(self.parts) < MOST_PARTS or len(data) >= LARGE_PART:
            self.parts.append(data)
        else:
            tail = self.parts[-1]
            if not isinstance(tail, bytearray):
                tail = self.parts[-1] = bytearray(tail)
            tail += data
        self.size += len(data)
        self.held += len(data)

    def take(self) -> bytes:
        """Take the bytes that have arrived since the last call."""
        parts, self.parts, self.held = self.parts, [], 0
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def unreadable(error: ServiceError) -> IncomingRequest:
    """Request for bytes that cannot be read as one: its error is answered in its turn."""
    made = IncomingRequest()
    made.complete, made.error = True, error
    return made
