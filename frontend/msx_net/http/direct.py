"""Jobs without ASGI: what the connections of a listener share, whichever version of HTTP they speak."""

from __future__ import annotations

import asyncio
import logging
import urllib.parse
from time import time
from typing import NamedTuple, Protocol

import httptools

from msx_core.held_bytes import HeldBytes
from msx_net.heartbeats import OFF, StreamHeartbeats
from msx_net.http.admission import ChecksKeys, admitted, check_model, check_priority
from msx_net.http.cors import Cors
from msx_net.http.family import JobRoute
from msx_net.http.head import Head
from msx_net.http.known_head import KnownHead
from msx_net.http.router import Match, Router
from msx_net.http.wire import LogsReplies, RawHeaders

log = logging.getLogger("msx.http")

METHODS = {b"POST": "POST", b"PUT": "PUT", b"GET": "GET"}
"""Requests of other methods go the ASGI way."""

MOST_TARGETS, LONGEST_URL = 256, 512
"""How many targets of requests are kept, and the bytes of the longest."""


class Target(NamedTuple):
    """What the first line of a request means."""

    match: Match
    job: JobRoute
    path: str
    raw_path: bytes
    query: bytes


class Flushed(Protocol):
    def flush(self) -> None: ...


class Direct:
    """`tokens` is None when authorization is off; `limit` is in bytes of a body (max_request_size).

    Without `takes_management` jobs that are management go the ASGI way, which judges them.
    """

    def __init__(
        self,
        router: Router,
        access_log: LogsReplies,
        tokens: ChecksKeys | None,
        cors: Cors,
        held: HeldBytes,
        limit: int,
        *,
        takes_management: bool = True,
        heartbeats: StreamHeartbeats = OFF,
    ) -> None:
        self._router, self._tokens = router, tokens
        self._takes_management, self.heartbeats = takes_management, heartbeats
        self.write_entry = access_log.write_entry
        """Logs a reply by what was asked, its id, when its request arrived and when it was answered."""
        self._cors, self.held, self.limit = cors, held, limit
        self._cors_headers: dict[bytes, RawHeaders] = {}
        self._unwritten: list[Flushed] = []
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
            if match.is_management and not self._takes_management:
                return None
            target = Target(match, match.route.answer, path, raw_path, parsed.query or b"")
            if match.route.when is None and len(url) <= LONGEST_URL:
                if len(self._targets) >= MOST_TARGETS:
                    self._targets.clear()
                self._targets[method, url] = target
        return target

    def know(self, method: bytes, url: bytes, headers: RawHeaders, client: str, version: str) -> KnownHead | None:
        """None if the request is not a job, or goes the ASGI way. Names of headers are in lower case."""
        try:
            target = self._target(method, url)
            if target is None:
                return None
            match = target.match
            head = Head(METHODS[method], target.path, target.raw_path, target.query, headers, version)
            if (head.content_length or 0) > self.limit or (head.content_encoding and not match.family.takes_as_sent):
                return None
            check_priority(head, None)
            template = target.job.template(head, match.names)
        except Exception:
            return None  # the ASGI way says why
        checked = self._tokens is not None and bool(match.kinds)
        return KnownHead(head, match, template, self._cors_of(head), client, checked=checked)

    def check(self, known: KnownHead) -> None:
        """The key that was good for this very head is good until it ends, or is withdrawn.

        Raises InvalidKey, ModelNotAllowed, PriorityNotAllowed, TooManyRequests.
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
            check_priority(known.head, key)
            known.key = key
        if key.rate is not None:
            key.take()

    def _cors_of(self, head: Head) -> RawHeaders:
        """One list for all requests whose replies allow the same origin."""
        allowed = self._cors.allowed(head)
        if (headers := self._cors_headers.get(allowed)) is None:
            headers = self._cors_headers[allowed] = self._cors.headers(allowed)
        return headers

    def flush_soon(self, stream: Flushed) -> None:
        """At the end of this turn of the loop, together with the others."""
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unwritten.append(stream)

    def _flush(self) -> None:
        streams, self._unwritten = self._unwritten, []
        for stream in streams:
            try:
                stream.flush()
            except Exception:
                log.exception("a stream cannot be written")
