"""The header blocks of replies."""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import formatdate
from time import time

from msx_net.http.wire import CACHE_HEADERS, JSON_HEADERS, RawHeaders, own_headers
from msx_net.http2.header_blocks import encode_field, encode_headers

CONTINUE = encode_headers([(b":status", b"100")])

OF_CONNECTIONS = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
"""Headers that HTTP/2 does not have (RFC 9113 §8.2.2): a handler's are left out."""

_JSON = encode_headers(own_headers(JSON_HEADERS))
_SHORT = 127
"""Bytes of a text whose length is one byte of a block."""


def reply_block(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Encode the headers of a reply, and the date."""
    fields = [(name.lower(), value.strip(b" \t")) for name, value in headers]
    kept = (field for field in fields if field[0] not in OF_CONNECTIONS)
    return encode_headers([(b":status", b"%d" % status), (b"date", _date(int(time()))), *kept])


class UsualBlock:
    """The block of most replies, made once a second but for the request's id and the length of the body."""

    __slots__ = ("_json", "_plain", "_second", "cors")

    def __init__(self, cors: RawHeaders) -> None:
        """Make the block of replies with these CORS headers."""
        self.cors = cors
        self._second = 0
        self._plain = self._json = b""

    def of(self, request_id: str, size: int, *, json: bool) -> bytes:
        """Block of a 200 without headers of its own; with `json` it states that it is JSON. `size`: of the body."""
        if (second := int(time())) != self._second:
            self._renew(second)
        start, id, length = self._json if json else self._plain, request_id.encode(), b"%d" % size
        if len(id) >= _SHORT:
            return start + encode_field(b"x-request-id", id) + encode_field(b"content-length", length)
        return b"%b\0\x0cx-request-id%c%b\0\x0econtent-length%c%b" % (start, len(id), id, len(length), length)

    def _renew(self, second: int) -> None:
        self._second = second
        self._plain = encode_headers([(b":status", b"200"), (b"date", _date(second)), *CACHE_HEADERS, *self.cors])
        self._json = self._plain + _JSON


def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()
