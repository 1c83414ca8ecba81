"""From the bytes of a connection to its requests: the callbacks of llhttp's parser."""

from __future__ import annotations

import logging
from typing import Any, Protocol

import httptools

from msx_frontend.errors import BadRequest, ServiceError
from msx_frontend.net.http.failures import reported
from msx_frontend.net.http.v1.incoming import STEERING, IncomingRequest

log = logging.getLogger("msx.http")

_OFFERS = (b"upgrade", b"http2-settings")
"""Headers of a client that would like another protocol. Java's offers HTTP/2 with every first request."""


class TakesRequests(Protocol):
    def request_begun(self, request: IncomingRequest) -> None:
        """Its head is complete."""

    def body_came(self, request: IncomingRequest) -> None: ...

    def request_complete(self, request: IncomingRequest) -> None: ...


class RequestReader:
    """Declines upgrades: the parser stops behind the head of a request that offers one, and would lose its body."""

    def __init__(self, requests: TakesRequests) -> None:
        self._requests: Any = requests
        self._parser: Any = _parser(self)
        self.request: IncomingRequest | None = None
        """The one that is being read; None between two."""
        self.last: IncomingRequest | None = None
        """The one that was read before."""
        self._offering = b""
        """The head of a request that offers an upgrade, without the offer."""
        self.begun = 0
        """How many requests have begun."""

    def feed(self, data: bytes) -> None:
        """Raises ServiceError for bytes that are not HTTP: nothing behind them can be read."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
        except httptools.HttpParserError as error:
            raise _why(error) from None

    def close(self) -> None:
        """Ends a reference cycle, so that its memory is free at once."""
        self._requests = self._parser = self.request = self.last = None

    # -- the parser's callbacks --

    def on_message_begin(self) -> None:
        self.begun += 1
        self.request = IncomingRequest()

    def on_url(self, url: bytes) -> None:
        assert self.request is not None
        self.request.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        request, name = self.request, name.lower()
        assert request is not None
        request.headers.append((name, value))
        if name in STEERING:
            request.steer(name, value)

    def on_headers_complete(self) -> None:
        request, parser = self.request, self._parser
        assert request is not None
        request.method, request.version = parser.get_method(), parser.get_http_version()
        if request.version == "1.0":
            request.keeps_alive = request.expects_continue = False
        if parser.should_upgrade() and request.method != b"CONNECT":
            self._offering = _without_offer(request)
        else:
            self._requests.request_begun(request)

    def on_body(self, body: bytes) -> None:
        if self.request is not None and not self._offering:
            self.request.add(body)
            self._requests.body_came(self.request)

    def on_message_complete(self) -> None:
        request = self.last = self.request
        self.request = None
        if request is not None and not self._offering:
            request.complete = True
            self._requests.request_complete(request)

    # -- an offer to upgrade --

    def _decline(self, rest: bytes) -> None:
        """As a server that does not know the other protocol: the request is an ordinary one (RFC 9110, 7.8)."""
        head, self._offering = self._offering, b""
        if head:
            self._parser = _parser(self)
            self.begun -= 1
            self.feed(head + rest)


def _without_offer(request: IncomingRequest) -> bytes:
    head = [b"%b %b HTTP/%b" % (request.method, request.url, request.version.encode())]
    for name, value in request.headers:
        if name == b"connection":
            value = b",".join(token for token in value.split(b",") if token.strip().lower() not in _OFFERS)
        if name not in _OFFERS:
            head.append(b"%b: %b" % (name, value))
    return b"\r\n".join([*head, b"", b""])


def _parser(callbacks: RequestReader) -> Any:
    parser = httptools.HttpRequestParser(callbacks)
    # Bytes behind a request with `connection: close` are not an error: the connection does not look at them.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def _why(error: httptools.HttpParserError) -> ServiceError:
    """What a callback raised is the parser's context; a bug of the server is reported as one."""
    cause = error.__context__ if isinstance(error, httptools.HttpParserCallbackError) else None
    return BadRequest("Invalid HTTP message.") if cause is None else reported(cause, "")
