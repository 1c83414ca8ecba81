"""The way from the fields of a stream to the head of a request (RFC 9113 §8.3.1): the form that it has in HTTP/1.1."""

from __future__ import annotations

import re
import urllib.parse
from typing import NamedTuple

from msx_net.http.asgi_request import SocketAddress
from msx_net.http.wire import RawHeaders, Scope

_PATH = re.compile(rb"/[!-~]*")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

Fields = list[tuple[bytes, bytes]]
"""Fields of a header block: pseudo-headers first, names in lower case."""


class Http2Head(NamedTuple):
    method: bytes
    target: bytes
    """Path and query, as they were sent."""
    scheme: bytes
    headers: RawHeaders
    """Headers without pseudo-headers, but with `host`."""

    @property
    def has_path(self) -> bool:
        """Whether the target is one of visible characters (RFC 3986), and not a whole URL or an asterisk."""
        return _PATH.fullmatch(self.target) is not None

    @property
    def has_method(self) -> bool:
        """Whether the method is a token (RFC 9110, 9.1)."""
        return _TOKEN.fullmatch(self.method) is not None

    @property
    def expects_continue(self) -> bool:
        return any(name == b"expect" and value.lower() == b"100-continue" for name, value in self.headers)

    def scope(self, client: SocketAddress, server: SocketAddress) -> Scope:
        """ASGI's, new for each request."""
        raw_path, _, query = self.target.partition(b"#")[0].partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "2",
            "server": server,
            "client": client,
            "scheme": self.scheme.decode("latin-1"),
            "root_path": "",
            "method": self.method.decode("latin-1"),
            "path": urllib.parse.unquote(raw_path.decode("ascii")),
            "raw_path": raw_path,
            "query_string": query,
            "headers": [*self.headers],
            "state": {},
        }


def request_head(fields: Fields) -> Http2Head:
    """`fields` are those of a valid request."""
    pseudo = {name: value for name, value in fields if name.startswith(b":")}
    headers = [field for field in fields if not field[0].startswith(b":")]
    if (authority := pseudo.get(b":authority")) is not None:
        headers = [(b"host", authority), *(field for field in headers if field[0] != b"host")]
    return Http2Head(pseudo[b":method"], pseudo[b":path"], pseudo[b":scheme"], _with_one_cookie(headers))


def _with_one_cookie(headers: RawHeaders) -> RawHeaders:
    """Clients may divide it, so that more of it is in HPACK's table (RFC 9113 §8.2.3)."""
    crumbs = [value for name, value in headers if name == b"cookie"]
    if len(crumbs) < 2:
        return headers
    return [*(field for field in headers if field[0] != b"cookie"), (b"cookie", b"; ".join(crumbs))]
