"""The head of most replies, made once a second and not once a reply."""

from __future__ import annotations

from msx_net.http.wire import CACHE_BYTES, RawHeaders


class UsualHead:
    """Usual head of replies with these CORS headers."""

    __slots__ = ("cors", "defaults", "parts")

    def __init__(self, cors: RawHeaders) -> None:
        self.cors = cors
        self.defaults: RawHeaders | None = None
        """The headers of all replies, for which `parts` was made."""
        self.parts = b"", b"", b""
        """Bytes before the request's id, and from there to the length of the body; the same of a body that is JSON."""

    def make(self, defaults: RawHeaders) -> None:
        """`defaults` are a new list every second: the date is among them."""
        lines = b"".join(b"%b: %b\r\n" % header for header in defaults)
        cors = b"".join(b"%b: %b\r\n" % header for header in self.cors)
        after = b"\r\n%bconnection: keep-alive\r\n%bcontent-length: " % (CACHE_BYTES, cors)
        json = b"\r\ncontent-type: application/json" + after
        self.defaults, self.parts = defaults, (b"HTTP/1.1 200 OK\r\n%bx-request-id: " % lines, after, json)
