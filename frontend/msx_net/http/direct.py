"""Jobs without ASGI: what the connections of a listener share, whichever version of HTTP they speak."""

from __future__ import annotations

import asyncio
import logging
import urllib.parse
from collections.abc import Callable
from functools import partial
from time import time
from typing import NamedTuple, Protocol

import httptools

from msx_core.held_bytes import HeldBytes
from msx_core.service_errors import ServiceError
from msx_net.heartbeats import OFF, StreamHeartbeats
from msx_net.http.admission import ChecksKeys, admitted, check_model, check_priority
from msx_net.http.asgi_request import SocketAddress
from msx_net.http.cors import Cors, is_preflight
from msx_net.http.family import Defers, JobRoute, JobTemplate, ReplySink, give_key
from msx_net.http.head import Head
from msx_net.http.known_head import KnownHead
from msx_net.http.router import Match, Router, has_encoded_slash
from msx_net.http.wire import LogsReplies, RawHeaders, request_too_large
from msx_net.keys import ClientKey
from msx_net.model_names import Epoch
from msx_net.page_guard import PageGuard

log = logging.getLogger("msx.http")

MOST_TARGETS, LONGEST_URL = 256, 512
"""How many targets of requests are kept, and the bytes of the longest."""


class Target(NamedTuple):
    """Meaning of a request's first line."""

    match: Match
    job: JobRoute
    method: str
    path: str
    raw_path: bytes
    query: bytes


class Flushed(Protocol):
    def flush(self) -> None: ...


class Direct:
    """`tokens` is None when authorization is off; `limit` is in bytes of a body (max_request_size).

    `guard` judges jobs that are management where no keys are asked for.
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
        guard: PageGuard | None = None,
        heartbeats: StreamHeartbeats = OFF,
        defers: Defers | None = None,
    ) -> None:
        self._router, self._tokens, self._defers = router, tokens, defers
        self._guard, self.heartbeats = guard, heartbeats
        self.write_entry = access_log.write_entry
        """Logs a reply by what was asked, its id, when its request arrived and when it was answered."""
        self._cors, self.held, self.limit = cors, held, limit
        self._cors_headers: dict[bytes, RawHeaders] = {}
        self._unwritten: list[Flushed] = []
        self._targets: dict[tuple[bytes, bytes], Target] = {}
        self._epoch = router.names.epoch
        """Epoch of the targets that are kept."""

    def _target(self, method: bytes, url: bytes) -> Target | None:
        """None for what is not a job. Kept, because a client whose bodies have many lengths sends many heads."""
        if not self._epoch.is_current:
            self._targets.clear()
            self._epoch = self.epoch
        target = self._targets.get((method, url))
        if target is None:
            parsed, name = httptools.parse_url(url), method.decode("ascii")
            raw_path: bytes = parsed.path
            path = urllib.parse.unquote(raw_path.decode("ascii")).rstrip("/") or "/"
            match = self._router.find(name, path, raw_path)
            if match.route is None or not isinstance(match.route.answer, JobRoute):
                return None
            target = Target(match, match.route.answer, name, path, raw_path, parsed.query or b"")
            if match.route.is_lasting and len(url) <= LONGEST_URL and not has_encoded_slash(raw_path):
                if len(self._targets) >= MOST_TARGETS:
                    self._targets.clear()
                self._targets[method, url] = target
        return target

    @property
    def epoch(self) -> Epoch:
        return self._router.names.epoch

    def know(
        self, method: bytes, url: bytes, headers: RawHeaders, client: str, server: SocketAddress, version: str
    ) -> KnownHead | None:
        """None if the request is not a job. Names of headers are in lower case; `server` is our address."""
        try:
            target = self._target(method, url)
        except Exception:
            return None  # the app says why
        if target is None:
            return None
        match = target.match
        head = Head(target.method, target.path, target.raw_path, target.query, headers, version)
        if is_preflight(head, match):
            return None
        later = self._defers.template(head, match.family, client) if self._defers is not None and head.prefer else None
        template = later or _template(target, head)
        known = KnownHead(head, match, template, self._cors_of(head), client, self._epoch)
        known.checked = self._tokens is not None and bool(match.kinds)
        known.refusal = self._refusal(head, match, server)
        return known

    def _refusal(self, head: Head, match: Match, server: SocketAddress) -> ServiceError | None:
        """Why no request with this head is answered, whatever its key and its body are."""
        try:
            if self._guard is not None and match.is_management:
                self._guard.check(head.method, head.header, server)
            check_priority(head, None)
        except ServiceError as error:
            return error
        return request_too_large(self.limit) if (head.content_length or 0) > self.limit else None

    def check(self, known: KnownHead) -> None:
        """The key that was good for this very head is good until it ends or is withdrawn.

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
        """Flush it at the end of this turn of the loop, together with the others."""
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


class LateTemplate:
    """Makes its template when the body is there: a template that cannot be made is told of then, and may be made the
    next time.
    """

    def __init__(self, make: Callable[[], JobTemplate]) -> None:
        self._make = make
        self.key: ClientKey | None = None
        self.asker: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        template = self._make()
        give_key(template, self.asker)
        template.submit(id, body, sink)


def _template(target: Target, head: Head) -> JobTemplate:
    make = partial(target.job.template, head, target.match.names)
    try:
        return make()
    except Exception:
        return LateTemplate(make)
