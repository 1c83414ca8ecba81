"""A reply to a job in HTTP/1.1."""

from __future__ import annotations

import asyncio
from typing import Protocol

from msx_core.held_bytes import UNCOUNTED, Hold
from msx_core.service_errors import ServiceError
from msx_net.http.compression import is_compressible
from msx_net.http.direct import Direct
from msx_net.http.direct_reply import DirectReply
from msx_net.http.direct_stream import HttpReplyHead
from msx_net.http.job_reply import begin
from msx_net.http.known_head import KnownHead
from msx_net.http.v1.close_delimited import end_reply, open_reply
from msx_net.http.v1.flow_control import TransportFlow
from msx_net.http.v1.incoming import IncomingRequest
from msx_net.http.v1.server import ServerState
from msx_net.http.v1.usual_head import UsualHead
from msx_net.http.wire import CHUNKED, JSON_HEADERS, RawHeaders, head_bytes, request_too_large

JOINED = 1 << 16
"""Bytes of a body that is copied behind its head; a larger one is written as it is."""


class WritesReplies(Protocol):
    """The connection of a reply."""

    transport: asyncio.Transport
    flow: TransportFlow
    server_state: ServerState
    usual: UsualHead
    held: Hold | None

    def answered(self, reply: Http1Reply) -> None: ...

    def completed(self, reply: Http1Reply) -> None: ...

    @property
    def must_close(self) -> bool: ...


class Http1Reply(DirectReply):
    __slots__ = ("_has_begun", "_is_chunked", "connection", "keep_alive")

    def __init__(self, connection: WritesReplies, direct: Direct, known: KnownHead) -> None:
        super().__init__(direct, known)
        self.connection = connection
        self.keep_alive = known.head.keeps_alive
        self._has_begun = False
        """The head of a stream is sent."""
        self._is_chunked = known.head.http_version != "1.0"
        """HTTP/1.0 has no chunks: there the connection's end is the reply's."""

    # -- the request --

    def body_came(self, request: IncomingRequest) -> None:
        if request.size > (limit := self.direct.limit):
            request.take()
            self.refuse(request_too_large(limit))
        elif request.size >= UNCOUNTED:
            self.hold(request.size)

    def hold(self, size: int) -> None:
        """Count the bytes of the request until it is answered."""
        if self.response_complete:
            return
        connection = self.connection
        if connection.held is None:
            connection.held = self.direct.held.hold()
        try:
            connection.held.resize(size)
        except ServiceError as error:
            self.fail(error)

    def request_complete(self, request: IncomingRequest) -> None:
        if self.response_complete:
            return
        if (body := request.take()) and self.known.packed:
            self.begin_packed(body)
        else:
            begin(self.known.template, self.id, body, self)

    # -- the reply --

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        """Most replies are usual: their head is that of the last one, but for the id and the length."""
        encoding = self.known.encoding
        if (
            status == 200
            and self.keep_alive
            and not phrase
            and (not headers or headers == JSON_HEADERS)
            and not self.response_complete
            and self._stream is None
            and (encoding is None or not is_compressible(status, headers, len(data)))
        ):
            connection = self.connection
            usual, defaults = connection.usual, connection.server_state.default_headers
            if usual.defaults is not defaults:
                usual.make(defaults)
            before, after, after_json = usual.parts
            head = b"%b%b%b%d\r\n\r\n" % (before, self.id.encode(), after_json if headers else after, len(data))
            if len(data) <= JOINED:
                connection.transport.write(head + data)
            else:
                connection.transport.writelines((head, data))
            self.response_complete, self.job = True, None
            connection.answered(self)
        else:
            super().answer(status, phrase, headers, data)

    def write_whole(self, head: HttpReplyHead, data: bytes) -> None:
        opening, transport = self._opening(head, []), self.connection.transport
        if len(data) <= JOINED:
            transport.write(opening + data)
        else:
            transport.writelines((opening, data))

    def write_part(self, head: HttpReplyHead | None, chunks: list[bytes], *, last: bool) -> None:
        if head is None and not last and self._is_chunked and len(chunks) == 1 and (data := chunks[0]):
            self.connection.transport.write(b"%x\r\n%b\r\n" % (len(data), data))  # most parts: a token of a text
            return
        framed = []
        if head is not None:
            self._has_begun = True
            framed.append(self._opening(head, [CHUNKED] if self._is_chunked else []))
        if self._is_chunked:
            framed += [b"%x\r\n%b\r\n" % (len(data), data) for data in chunks if data]
            framed += [b"0\r\n\r\n"] if last else []
        else:
            framed += chunks
            self._delimit(first=head is not None, last=last)
        self.connection.transport.write(b"".join(framed))

    def _delimit(self, *, first: bool, last: bool) -> None:
        """The end of the connection is that of the reply."""
        if first:
            open_reply(self.connection.transport)
        if last:
            end_reply(self.connection.transport)

    @property
    def writable(self) -> bool:
        return not self.connection.flow.write_paused

    @property
    def promises_more(self) -> bool:
        """Its head has told the client that the connection goes on."""
        return self.keep_alive and self._is_chunked and self._has_begun

    def cut(self) -> None:
        self.keep_alive = False
        if not self._is_chunked:
            self.connection.transport.abort()

    def completed(self) -> None:
        self.connection.completed(self)

    def _opening(self, head: HttpReplyHead, framing: RawHeaders) -> bytes:
        closes = head.status >= 400 and self.known.family.closes_on_error
        if closes or self.connection.must_close:
            self.keep_alive = False
        lasts = (b"connection", b"keep-alive" if self.keep_alive else b"close")
        headers = [*self.connection.server_state.default_headers, *head.headers, *framing, lasts]
        return head_bytes(head.status, headers, head.reason)
