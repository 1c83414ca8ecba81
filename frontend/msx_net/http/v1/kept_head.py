"""The head of a connection's last request: the next request mostly has the same, word for word."""

from __future__ import annotations

from msx_core.held_bytes import UNCOUNTED
from msx_net.http.known_head import KnownHead
from msx_net.http.v1.incoming import IncomingRequest
from msx_net.http.v1.usual_head import UsualHead

LONGEST_HEAD = 8192
"""The largest head, in bytes, that is kept and compared with the next one."""


class KeptHead:
    __slots__ = ("_is_plain", "is_large", "known", "raw", "size", "usual", "watches_body", "words")

    def __init__(self, request: IncomingRequest, known: KnownHead, usual: UsualHead) -> None:
        self.words = request.url, request.method, request.version, request.headers
        self.known, self.usual = known, usual
        self.watches_body = request.length is None or request.length >= UNCOUNTED
        """The body may be too large, or has to be counted; else it is short, as the head says."""
        self._is_plain = not (request.is_chunked or request.expects_continue or known.packed)
        self.raw = b""
        """The head as it stood on the wire; empty while it is not kept."""
        self.size = 0
        """Bytes of the whole request; 0 while it is not kept."""
        self.is_large = False
        """The held bytes of the listener, which are counted."""

    def keep(self, request: bytes) -> None:
        """`request` is all of one request; its head is kept if the length of the body follows from it."""
        head = self.known.head
        end = request.find(b"\r\n\r\n", 0, LONGEST_HEAD) + 4
        length = head.content_length
        if end > 4 and length is not None and end + length == len(request) and self._is_plain:
            self.raw, self.size = request[:end], len(request)
            self.is_large = self.size >= UNCOUNTED

    def forget(self) -> None:
        self.raw, self.size = b"", 0
