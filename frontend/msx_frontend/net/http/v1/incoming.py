"""One request as it arrives."""

from __future__ import annotations

from msx_frontend.errors import ServiceError
from msx_frontend.net.http.wire import RawHeaders

STEERING = frozenset((b"connection", b"expect"))
"""Headers that say how the request itself is read."""


class IncomingRequest:
    """Its head, and the part of its body that nobody has taken yet."""

    __slots__ = (
        "_parts",
        "complete",
        "error",
        "expects_continue",
        "headers",
        "held",
        "keeps_alive",
        "method",
        "size",
        "url",
        "version",
    )

    def __init__(self) -> None:
        self.method, self.url, self.version = b"", b"", "1.1"
        self.headers: RawHeaders = []
        """Names are in lower case."""
        self.keeps_alive = True
        self.expects_continue = False
        """The client waits for `100 Continue` before it sends the body."""
        self._parts: list[bytes] = []
        self.size = 0
        """Bytes of the body that have arrived."""
        self.held = 0
        """Those of them that nobody has taken."""
        self.complete = False
        self.error: ServiceError | None = None
        """Why it cannot be read. There is no head, then."""

    def steer(self, name: bytes, value: bytes) -> None:
        """Read one of the STEERING headers."""
        value = value.strip().lower()
        if name == b"connection":
            self.keeps_alive = self.keeps_alive and b"close" not in value
        else:
            self.expects_continue = value == b"100-continue"

    @property
    def has_body(self) -> bool:
        for name, value in self.headers:
            if name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 \t")):
                return True
        return False

    def add(self, data: bytes) -> None:
        self._parts.append(data)
        self.size += len(data)
        self.held += len(data)

    def take(self) -> bytes:
        """What has arrived since the last call."""
        parts, self._parts, self.held = self._parts, [], 0
        return parts[0] if len(parts) == 1 else b"".join(parts)


def unreadable(error: ServiceError) -> IncomingRequest:
    """What stands behind the last request and cannot be read as one: it is answered in its turn."""
    made = IncomingRequest()
    made.complete, made.error = True, error
    return made
