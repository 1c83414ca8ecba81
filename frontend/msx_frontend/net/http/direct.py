"""Predictions without ASGI: what the connections of a listener share, and what they know of a request's head."""

from __future__ import annotations

import asyncio
import urllib.parse
from time import monotonic, time
from typing import TYPE_CHECKING

import httptools

from msx_frontend.apis.torchserve.prediction import Order, PredictionEndpoint
from msx_frontend.apis.torchserve.targets import target_of
from msx_frontend.held_bytes import UNCOUNTED, HeldBytes
from msx_frontend.keys.key import Key, Kind
from msx_frontend.net.http.gate import Gate
from msx_frontend.net.http.head import Head
from msx_frontend.net.http.wire import CACHE_BYTES, LogsReplies, RawHeaders

if TYPE_CHECKING:
    from msx_frontend.net.http.direct_reply import DirectReply

METHODS = {b"POST": "POST", b"PUT": "PUT", b"GET": "GET"}
"""Requests of other methods go the ASGI way."""

LONGEST_HEAD = 8192
"""Bytes of a head that is kept, to be compared with the next one."""


class Known:
    """A head that means a prediction. The next request of a connection mostly says the same, word for word."""

    __slots__ = ("asked", "head", "is_large", "key", "kinds", "method", "order", "raw", "size", "url")

    def __init__(
        self, method: bytes, url: bytes, head: Head, order: Order, kinds: tuple[Kind, ...], client: str
    ) -> None:
        """`kinds` are those of the keys that it needs one of; none where it needs none."""
        self.method, self.url, self.head, self.order, self.kinds = method, url, head, order, kinds
        self.key: Key | None = None
        """By which it passed the last time."""
        self.asked = client, "", head.method, head.target, head.protocol, 200
        """For the access log, if it is answered as usual."""
        self.raw = b""
        """The head as it stood on the wire; empty while it is not kept."""
        self.size = 0
        """Bytes of the whole request."""
        self.is_large = False
        """They are counted."""

    def keep(self, request: bytes) -> None:
        """`request` is all of one request; its head is kept if the length of the body follows from it."""
        end = request.find(b"\r\n\r\n", 0, LONGEST_HEAD) + 4
        length = self.head.content_length
        if end > 4 and length is not None and end + length == len(request) and not self._is_chunked:
            self.raw, self.size = request[:end], len(request)
            self.is_large = self.size >= UNCOUNTED

    def use(self, key: Key | None) -> None:
        self.key = key
        self.order.key = key if key is not None and key.models is not None else None
        client, _, method, target, protocol, status = self.asked
        self.asked = client, "" if key is None else key.name, method, target, protocol, status

    @property
    def _is_chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self.head.raw_headers)


class Direct:
    def __init__(
        self,
        predictions: PredictionEndpoint,
        access_log: LogsReplies,
        gate: Gate | None,
        cors: RawHeaders,
        held: HeldBytes,
    ) -> None:
        self.predictions, self.access_log, self._gate, self.cors = predictions, access_log, gate, cors
        self.held = held
        self._defaults: RawHeaders | None = None
        self._usual = b"", b"", b""
        self._answered: list[DirectReply] = []

    def know(self, method: bytes, url: bytes, headers: RawHeaders, client: str) -> Known | None:
        """None for what is no prediction, or one that goes the ASGI way."""
        if method not in METHODS:
            return None
        parsed = httptools.parse_url(url)
        raw_path: bytes = parsed.path
        path = urllib.parse.unquote(raw_path.decode("ascii")).rstrip("/") or "/"
        target = target_of(path)
        if target is None:
            return None
        head = Head(METHODS[method], path, raw_path, parsed.query or b"", headers, "1.1")
        if (head.content_length or 0) > self.predictions.max_request_size:
            return None
        kinds = () if self._gate is None else self._gate.kinds(head)
        return Known(method, url, head, Order(head, target), kinds, client)

    def check(self, known: Known) -> None:
        """The key that was good for this very head is good until it ends, or is withdrawn.

        Raises InvalidKey, TooManyRequests.
        """
        key = known.key
        if key is None or time() >= key.until:
            known.use(None)
            assert self._gate is not None
            key = self._gate.check_any(known.kinds, known.head.authorization)
            known.use(key)
        if key.rate is not None:
            key.take()

    def usual(self, defaults: RawHeaders) -> tuple[bytes, bytes, bytes]:
        """The head of most replies: what stands before the request's id, and from there to the length of the body; the
        same of a body that is JSON.

        `defaults` are uvicorn's headers, a new list every second: the date is among them.
        """
        if defaults is not self._defaults:
            lines = b"".join(b"%b: %b\r\n" % header for header in defaults)
            cors = b"".join(b"%b: %b\r\n" % header for header in self.cors)
            after = b"\r\n%bconnection: keep-alive\r\n%bcontent-length: " % (CACHE_BYTES, cors)
            json = b"\r\ncontent-type: application/json" + after
            self._defaults, self._usual = defaults, (b"HTTP/1.1 200 OK\r\n%bx-request-id: " % lines, after, json)
        return self._usual

    def log(self, reply: DirectReply, status: int) -> None:
        asked = *reply.known.asked[:-1], status
        self.access_log.write_all([(asked, reply.id, reply.started, monotonic())])

    def answered(self, reply: DirectReply) -> None:
        """By 200, as usual: it is logged together with the others of this turn of the loop."""
        if not self._answered:
            asyncio.get_running_loop().call_soon(self._log_answered)
        self._answered.append(reply)

    def _log_answered(self) -> None:
        now = monotonic()
        self.access_log.write_all([(one.known.asked, one.id, one.started, now) for one in self._answered])
        self._answered.clear()
