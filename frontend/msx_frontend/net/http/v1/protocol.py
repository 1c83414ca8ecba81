"""HTTP/1.1 on one connection: uvicorn's, with TorchServe's answer to bytes that are not HTTP, and without upgrades."""

from __future__ import annotations

import asyncio
import logging
from typing import cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from msx_frontend.errors import BadRequest
from msx_frontend.ids import new_request_id
from msx_frontend.net.http.status_line import EXTENSION, StatusLine
from msx_frontend.net.http.wire import Scope, common_headers, error_bytes

log = logging.getLogger("msx.http")

_OFFERS = (b"upgrade", b"http2-settings")
"""Headers of a client that would like another protocol. Java's offers HTTP/2 with every first request."""


class HttpProtocol(HttpToolsProtocol):
    """The parser stops behind the head of a request that offers an upgrade, and would lose its body."""

    _offering: bytes = b""
    """The head of such a request without the offer."""

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
        except httptools.HttpParserError:
            log.info("%s sent bytes that are not HTTP", self.client)
            self.send_400_response("")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._status_line = StatusLine(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.cycle = None  # type: ignore[assignment]  # ends a reference cycle, so that its memory is free at once

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast(Scope, self.scope)["extensions"] = {EXTENSION: self._status_line}

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._offering = self._head_without_offer()
        else:
            super().on_headers_complete()
            self.cycle.transport = cast(asyncio.Transport, self._status_line)

    def on_message_complete(self) -> None:
        if not self._offering:
            super().on_message_complete()

    def abort(self) -> None:
        self.transport.abort()

    def _decline(self, rest: bytes) -> None:
        """As a server that does not know the other protocol: the request is an ordinary one (RFC 9110, 7.8)."""
        head, self._offering = self._offering, b""
        if head:
            self.parser = httptools.HttpRequestParser(self)
            self.data_received(head + rest)

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        head = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            if name == b"connection":
                value = b",".join(token for token in value.split(b",") if token.strip().lower() not in _OFFERS)
            if name not in _OFFERS:
                head.append(b"%b: %b" % (name, value))
        return b"\r\n".join([*head, b"", b""])

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP as TorchServe does."""
        body = error_bytes(BadRequest("Invalid HTTP message."))
        lines = [b"content-type: application/json", b"content-length: %d" % len(body), b"connection: close"]
        lines += [b"%b: %b" % header for header in common_headers(new_request_id())]
        self.transport.write(b"\r\n".join([b"HTTP/1.1 400 Bad Request", *lines, b"", body]))
        self.transport.close()
