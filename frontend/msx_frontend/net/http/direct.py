"""Jobs without ASGI: what the connections of a listener share, and what they keep of a request's head."""

from __future__ import annotations

import asyncio
import urllib.parse
from time import monotonic, time
from typing import TYPE_CHECKING, NamedTuple

import httptools

from msx_frontend.held_bytes import UNCOUNTED, HeldBytes
from msx_frontend.keys.key import Key
from msx_frontend.net.http.admission import ChecksKeys, admitted, check_model
from msx_frontend.net.http.compression import accepted
from msx_frontend.net.http.cors import Cors
from msx_frontend.net.http.family import JobRoute, JobTemplate
from msx_frontend.net.http.head import Head
from msx_frontend.net.http.router import Match, Router
from msx_frontend.net.http.usual_head import UsualHead
from msx_frontend.net.http.wire import LogsReplies, RawHeaders

if TYPE_CHECKING:
    from msx_frontend.net.http.direct_reply import DirectReply

METHODS = {b"POST": "POST", b"PUT": "PUT", b"GET": "GET"}
"""Requests of other methods go the ASGI way."""

LONGEST_HEAD = 8192
"""The largest head, in bytes, that is kept and compared with the next one."""


MOST_TARGETS, LONGEST_URL = 256, 512
"""How many targets of requests are kept, and the bytes of the longest."""


class Target(NamedTuple):
    """What the first line of a request means."""

    match: Match
    job: JobRoute
    path: str
    raw_path: bytes
    query: bytes


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


class Direct:
    """`tokens` is None when authorization is off; `limit` is in bytes of a body (max_request_size)."""

    def __init__(
        self,
        router: Router,
        access_log: LogsReplies,
        tokens: ChecksKeys | None,
        cors: Cors,
        held: HeldBytes,
        limit: int,
    ) -> None:
        self._router, self.access_log, self._tokens = router, access_log, tokens
        self._cors, self.held, self.limit = cors, held, limit
        self._usual: dict[bytes, UsualHead] = {}
        self._answered: list[DirectReply] = []
        self._targets: dict[tuple[bytes, bytes], Target] = {}

    def _target(self, method: bytes, url: bytes) -> Target | None:
        """None for what is not a job. Kept, because a client whose bodies have many lengths sends many heads."""
        target = self._targets.get((method, url))
        if target is None and method in METHODS:
            parsed = httptools.parse_url(url)
            raw_path: bytes = parsed.path
            path = urllib.parse.unquote(raw_path.decode("ascii")).rstrip("/") or "/"
            match = self._router.find(METHODS[method], path)
            if match.route is None or not isinstance(match.route.answer, JobRoute):
                return None
            target = Target(match, match.route.answer, path, raw_path, parsed.query or b"")
            if match.route.when is None and len(url) <= LONGEST_URL:
                if len(self._targets) >= MOST_TARGETS:
                    self._targets.clear()
                self._targets[method, url] = target
        return target

    def know(self, method: bytes, url: bytes, headers: RawHeaders, client: str) -> CachedHead | None:
        """None if the request is not a job, or goes the ASGI way."""
        try:
            target = self._target(method, url)
            if target is None:
                return None
            match = target.match
            head = Head(METHODS[method], target.path, target.raw_path, target.query, headers, "1.1")
            if (head.content_length or 0) > self.limit or (head.content_encoding and not match.family.takes_as_sent):
                return None
            template = target.job.template(head, match.names)
        except Exception:
            return None  # the ASGI way says why
        checked = self._tokens is not None and bool(match.kinds)
        return CachedHead(method, url, head, match, template, self._usual_head(head), client, checked=checked)

    def check(self, known: CachedHead) -> None:
        """The key that was good for this very head is good until it ends, or is withdrawn.

        Raises InvalidKey, ModelNotAllowed, TooManyRequests.
        """
        key = known.key
        if key is None or time() >= key.until:
            known.use(None)
            assert self._tokens is not None
            key = admitted(self._tokens, known.match, known.head.authorization)
            assert key is not None
            known.use(key)
            known.key = None  # refused, it is in the access log, and the next request is checked again
            check_model(known.match, key)
            known.key = key
        if key.rate is not None:
            key.take()

    def _usual_head(self, head: Head) -> UsualHead:
        """One for all requests whose replies allow the same origin."""
        allowed = self._cors.allowed(head)
        if (usual := self._usual.get(allowed)) is None:
            usual = self._usual[allowed] = UsualHead(self._cors.headers(allowed))
        return usual

    def log(self, reply: DirectReply, status: int) -> None:
        asked = *reply.known.asked[:-1], status
        self.access_log.write_all([(asked, reply.id, reply.started, monotonic())])

    def answered(self, reply: DirectReply) -> None:
        """Log a 200 together with the others of this turn of the loop."""
        if not self._answered:
            asyncio.get_running_loop().call_soon(self._log_answered)
        self._answered.append(reply)

    def _log_answered(self) -> None:
        now = monotonic()
        self.access_log.write_all([(one.known.asked, one.id, one.started, now) for one in self._answered])
        self._answered.clear()
