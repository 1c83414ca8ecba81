"""A request's head that is kept: the next request of a connection is compared with it."""

from __future__ import annotations

from msx_frontend.held_bytes import UNCOUNTED
from msx_frontend.keys.key import Key
from msx_frontend.net.http.compression import accepted
from msx_frontend.net.http.family import JobTemplate
from msx_frontend.net.http.head import Head
from msx_frontend.net.http.router import Match
from msx_frontend.net.http.v1.usual_head import UsualHead

LONGEST_HEAD = 8192
"""The largest head, in bytes, that is kept and compared with the next one."""


class CachedHead:
    """A head that means a job. The next request of a connection mostly has the same, word for word."""

    __slots__ = (
        "asked",
        "checked",
        "encoding",
        "family",
        "head",
        "is_large",
        "key",
        "match",
        "method",
        "raw",
        "size",
        "template",
        "url",
        "usual",
    )

    def __init__(
        self,
        method: bytes,
        url: bytes,
        head: Head,
        match: Match,
        template: JobTemplate,
        usual: UsualHead,
        client: str,
        *,
        checked: bool,
    ) -> None:
        """`checked`: the route needs a key."""
        self.method, self.url, self.head = method, url, head
        self.match, self.family, self.template, self.checked = match, match.family, template, checked
        self.usual = usual
        self.encoding = accepted(head.header(b"accept-encoding")) if match.family.compress_replies else None
        """How large replies are compressed; None if they are not."""
        self.key: Key | None = None
        """The key that was good for this head the last time."""
        self.asked = client, "", head.method, head.target, head.protocol, 200
        """The entry of the access log for an ordinary answer."""
        self.raw = b""
        """The head as it stood on the wire; empty while it is not kept."""
        self.size = 0
        """Bytes of the whole request."""
        self.is_large = False
        """The held bytes of the listener, which are counted."""

    def keep(self, request: bytes) -> None:
        """`request` is all of one request; its head is kept if the length of the body follows from it."""
        end = request.find(b"\r\n\r\n", 0, LONGEST_HEAD) + 4
        length = self.head.content_length
        if end > 4 and length is not None and end + length == len(request) and not self._is_chunked:
            self.raw, self.size = request[:end], len(request)
            self.is_large = self.size >= UNCOUNTED

    def use(self, key: Key | None) -> None:
        self.key = key
        self.template.key = key if key is not None and key.models is not None else None
        client, _, method, target, protocol, status = self.asked
        self.asked = client, "" if key is None else key.name, method, target, protocol, status

    @property
    def _is_chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self.head.raw_headers)
