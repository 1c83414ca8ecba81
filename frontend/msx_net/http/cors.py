"""Cross-origin resource sharing (the Fetch standard): which headers let a browser's pages read replies."""

from __future__ import annotations

from collections.abc import Sequence

from msx_net.http.head import Head
from msx_net.http.router import PREFLIGHT, Match
from msx_net.http.wire import RawHeaders

ANY = "*"
ORIGIN, VARY = b"access-control-allow-origin", b"vary"


class Cors:
    """One origin, or `*`, is on every reply as it is configured (TorchServe's rule): the browser compares it.

    Of several, a reply names the one that its request came from. Replies to other origins have no CORS headers.
    """

    def __init__(self, origins: str = "", methods: str = "", headers: str = "") -> None:
        """The values of `cors_allowed_origin`, a comma-separated list, `cors_allowed_methods` and
        `cors_allowed_headers`; "" for keys that are not set.
        """
        listed = [one.strip() for one in origins.split(",") if one.strip()]
        self._only = ANY if ANY in listed else origins if len(listed) < 2 else ""
        self._listed = {one.lower().encode(): one.encode() for one in listed}
        texts = {b"access-control-allow-methods": methods, b"access-control-allow-headers": headers}
        self._others = [(name, text.encode()) for name, text in texts.items() if text]

    def trusts(self, origin: str) -> bool:
        """Whether pages of this origin are among those that the keys name."""
        return self._only == ANY or origin.lower().encode("latin-1") in self._listed

    def allowed(self, head: Head) -> bytes:
        """The origin that the reply to this request allows; empty for none."""
        if self._only or not self._listed:
            return self._only.encode()
        return self._listed.get(head.header(b"origin").lower().encode("latin-1"), b"")

    def headers(self, allowed: bytes) -> RawHeaders:
        """Headers of a reply that allows this origin."""
        varies = [(VARY, b"origin")] if self._listed and not self._only else []
        return [(ORIGIN, allowed), *self._others, *varies] if allowed else varies


def is_preflight(head: Head, match: Match) -> bool:
    """Whether a browser asks what it may do before it sends a key.

    A route of its own for OPTIONS answers all other OPTIONS.
    """
    if head.method != PREFLIGHT:
        return False
    return bool(match.allowed) or (match.route is not None and bool(head.header(b"access-control-request-method")))


def with_cors(headers: RawHeaders, cors: Sequence[tuple[bytes, bytes]]) -> RawHeaders:
    """The server's CORS headers replace a handler's; the values of Vary are joined."""
    if not cors:
        return headers
    names = {name for name, _ in cors}
    if not any(name in names for name, _ in headers):
        return [*headers, *cors]
    varies = b", ".join(value for name, value in (*headers, *cors) if name == VARY)
    both = [*(header for header in headers if header[0] not in names), *cors]
    return [*(header for header in both if header[0] != VARY), *([(VARY, varies)] if varies else [])]
