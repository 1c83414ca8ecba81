"""The way from the bytes of a connection to its requests: the callbacks of llhttp's parser."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import Any, Protocol

import httptools

from msx_core.service_errors import BadRequest, ServiceError
from msx_net.connections import turns
from msx_net.connections.limits import ConnectionLimits
from msx_net.http.failures import reported
from msx_net.http.head_errors import HeadTooLarge, TooManyHeaders
from msx_net.http.v1.errors import ChunksTooLarge, TargetTooLong
from msx_net.http.v1.incoming import STEERING, IncomingRequest

log = logging.getLogger("msx.http")

LARGEST_PIECE, SMALL_PIECE = 1 << 12, 1 << 10
"""Bytes that the parser is given at a time, and where requests or chunks are small: it takes a fifth of a millisecond
for a thousand bytes of them. So much of a head that follows a body may be among them uncounted."""

MANY = 16
"""Requests and chunks of a piece from which on they are small."""

USUAL_CHUNK_LINE = 16
"""Bytes beside the data of a chunk that do not count: its size and two line ends."""

_OFFERS = (b"upgrade", b"http2-settings")
"""Headers of a client that would like another protocol. Java's offers HTTP/2 with every first request."""


class TakesRequests(Protocol):
    def request_begun(self, request: IncomingRequest) -> None:
        """Its head is complete."""

    def body_came(self, request: IncomingRequest) -> None: ...

    def request_complete(self, request: IncomingRequest) -> None: ...

    @property
    def requests_wait(self) -> bool:
        """More of them need not be read for the time being."""


class Http1Reader:
    """Declines upgrades: the parser stops behind the head of a request that offers one, and would lose its body."""

    def __init__(self, requests: TakesRequests, limits: ConnectionLimits) -> None:
        self._requests: Any = requests
        self._limits, self._most_headers = limits, limits.max_request_headers
        self._parser: Any = _parser(self)
        self.request: IncomingRequest | None = None
        """The one that is being read; None between two."""
        self.last: IncomingRequest | None = None
        """The one that was read before."""
        self._offering = b""
        """The head of a request that offers an upgrade, without the offer."""
        self.begun = 0
        """How many requests have begun."""
        self._counted = 0
        """Bytes of the head that is being read, or of what its chunked body has beside the data."""
        self._chunks = self._trailers = 0
        self._piece = LARGEST_PIECE
        self._found = 0
        """Requests and chunks that have begun in the piece."""

    def feed(self, data: bytes) -> int:
        """The parser is given no more at a time than may be missing of a head.

        Returns how many bytes were read: not all if `requests_wait`, or if the turn is over. Raises ServiceError for
        what is not HTTP, or above the limits: nothing behind it can be read.
        """
        if len(data) <= SMALL_PIECE and len(data) + self._counted <= self._limits.max_request_head_size:
            self._feed(data)
            return len(data)
        view, at, over = memoryview(data), 0, perf_counter() + turns.TURN
        while at < len(data) and self._parser is not None and not self._requests.requests_wait:
            size = self._size_of_piece()
            self._found = 0
            self._feed(view[at : at + size])
            at += size
            self._piece = SMALL_PIECE if self._found > MANY else min(self._piece << 1, LARGEST_PIECE)
            if self._found > 1 and perf_counter() > over:
                break
        return at

    def _size_of_piece(self) -> int:
        """The bytes of a body whose length is known are nothing but bytes."""
        request = self.request
        if request is None or not request.head_complete:
            return min(self._piece, self._limits.max_request_head_size - self._counted)
        return max(self._piece, 0 if request.length is None else request.length - request.size)

    def close(self) -> None:
        """Ends a reference cycle, so that its memory is free at once."""
        self._requests = self._parser = self.request = self.last = None

    def _feed(self, data: bytes | memoryview) -> None:
        before, begun = self.request, self.begun
        in_body = before is not None and before.head_complete
        size = 0 if before is None else before.size
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(bytes(data[offer.args[0] :]))
            return
        except httptools.HttpParserError as error:
            raise _why(error) from None
        request = self.request
        if request is None or (request.head_complete and not (in_body and request is before)):
            self._counted = self._chunks = 0
        elif request.head_complete:
            self._count_chunks(request, len(data) + size - request.size)
        elif request is before:
            self._count_head(request, self._counted + len(data))
        else:  # where it begins in `data` is certain only if nothing else is there
            self._count_head(request, len(data) if before is None and self.begun == begun + 1 else 0)

    def _count_head(self, request: IncomingRequest, size: int) -> None:
        self._counted, most = size, self._limits.max_request_head_size
        if size >= most:
            long_target = len(request.url) * 2 > most and not request.headers
            raise TargetTooLong(self._limits) if long_target else HeadTooLarge(self._limits)

    def _count_chunks(self, request: IncomingRequest, more: int) -> None:
        """`more`: bytes beside the data."""
        if request.is_chunked:
            self._counted = max(0, self._counted + more - self._chunks * USUAL_CHUNK_LINE)
            self._chunks = 0
            if self._counted >= self._limits.max_request_head_size:
                raise ChunksTooLarge(self._limits)

    # -- the parser's callbacks --

    def on_message_begin(self) -> None:
        self.begun += 1
        self._found += 1
        self._trailers = 0
        self.request = IncomingRequest()

    def on_url(self, url: bytes) -> None:
        assert self.request is not None
        self.request.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        request, name = self.request, name.lower()
        assert request is not None
        if request.head_complete:
            self._drop_trailer(name)
            return
        headers = request.headers
        headers.append((name, value))
        if len(headers) > self._most_headers:
            raise TooManyHeaders(self._limits)
        if name in STEERING:
            if name == b"host":
                request.hosts += 1
            else:
                request.steer(name, value)

    def on_headers_complete(self) -> None:
        request, parser = self.request, self._parser
        assert request is not None
        request.finish_head(parser.get_method(), parser.get_http_version())
        if parser.should_upgrade() and request.method != b"CONNECT":
            self._offering = _without_offer(request)
        else:
            self._requests.request_begun(request)

    def on_chunk_header(self) -> None:
        self._chunks += 1
        self._found += 1

    def on_body(self, body: bytes) -> None:
        if self.request is not None and not self._offering:
            self.request.add(body)
            if self.request.is_watched:
                self._requests.body_came(self.request)

    def on_message_complete(self) -> None:
        request = self.last = self.request
        self.request = None
        if request is not None and not self._offering:
            request.complete = True
            self._requests.request_complete(request)

    def _drop_trailer(self, name: bytes) -> None:
        """Drop it: behind the body a header may not mean what it means before it (RFC 9110, 6.5.1), and no route wants
        one."""
        self._trailers += 1
        if self._trailers > self._most_headers:
            raise TooManyHeaders(self._limits, "trailers")
        if name in STEERING:
            raise BadRequest(f"The header {name.decode()} does not stand behind a body.")

    # -- an offer to upgrade --

    def _decline(self, rest: bytes) -> None:
        """As a server that does not know the other protocol: the request is an ordinary one (RFC 9110, 7.8)."""
        head, self._offering = self._offering, b""
        if head:
            self._parser = _parser(self)
            self.begun -= 1
            self._feed(head + rest)


def _without_offer(request: IncomingRequest) -> bytes:
    head = [b"%b %b HTTP/%b" % (request.method, request.url, request.version.encode())]
    for name, value in request.headers:
        if name == b"connection":
            value = b",".join(token for token in value.split(b",") if token.strip().lower() not in _OFFERS)
        if name not in _OFFERS:
            head.append(b"%b: %b" % (name, value))
    return b"\r\n".join([*head, b"", b""])


def _parser(callbacks: Http1Reader) -> Any:
    parser = httptools.HttpRequestParser(callbacks)
    # Bytes behind a request with `connection: close` are not an error: the connection does not look at them.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def _why(error: httptools.HttpParserError) -> ServiceError:
    """Error of a parser, whose context is what a callback raised; a bug of the server is reported as one."""
    cause = error.__context__ if isinstance(error, httptools.HttpParserCallbackError) else None
    return BadRequest("Invalid HTTP message.") if cause is None else reported(cause, "")
