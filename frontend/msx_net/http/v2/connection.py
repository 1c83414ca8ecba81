"""The requests of one HTTP/2 connection: the headers of a stream begin each."""

from __future__ import annotations

from collections.abc import Callable

from msx_core.service_errors import BadRequest
from msx_net.http.asgi_request import SocketAddress, client_text, socket_address
from msx_net.http.head_errors import TooManyHeaders
from msx_net.http.v2.asgi_stream import AsgiStream
from msx_net.http.v2.beginnings import JobBeginning, Refusal
from msx_net.http.v2.port import Calls, Port
from msx_net.http.v2.request_head import Fields, Http2Head, request_head
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.stream import Stream
from msx_net.http2.stream_events import StreamEvents
from msx_net.model_names import Epoch

KEPT_HEADS, LONGEST_HEAD = 64, 8192
"""How many heads of a connection are kept, and the bytes of the longest."""

Begin = Callable[[Stream, bool], StreamEvents]
"""Function that begins a request, from its stream and whether it has no body."""


class RequestConnection:
    """`protocol` calls `accept`. What a header block means is found out once: the same block gives the same list."""

    protocol: Http2Protocol

    def __init__(self, port: Port) -> None:
        self._port = port
        self._calls: Calls | None = None
        self._kept: dict[int, tuple[Begin, Fields]] = {}
        """Beginnings by the identity of their headers, which are kept so that no others have it."""
        self._epoch = self._epoch_now
        """Epoch of the beginnings that are kept."""
        self._client: SocketAddress = None
        self._server: SocketAddress = None
        self._client_text = ""

    def accept(self, stream: Stream, headers: Fields, ended: bool) -> StreamEvents:
        if not self._epoch.is_current:
            self._kept.clear()
            self._epoch = self._epoch_now
        kept = self._kept.get(id(headers))
        begin = self._read(headers) if kept is None else kept[0]
        return begin(stream, ended)

    @property
    def _epoch_now(self) -> Epoch:
        direct = self._port.direct
        return Epoch() if direct is None else direct.epoch

    def _read(self, headers: Fields) -> Begin:
        """Function that begins requests with these headers."""
        if not self._client_text:
            self._learn_ends()
        begin = self._beginning(headers)
        if sum(len(name) + len(value) for name, value in headers) <= LONGEST_HEAD:
            if len(self._kept) >= KEPT_HEADS:
                self._kept.clear()
            self._kept[id(headers)] = begin, headers
        return begin

    def _beginning(self, headers: Fields) -> Begin:
        port = self._port
        if (calls := self._calls_of_port()) is not None and calls.takes(headers):
            return lambda stream, ended: calls.accept(stream, headers, ended)
        head = request_head(headers)
        if len(head.headers) > port.limits.max_request_headers:
            return Refusal(TooManyHeaders(port.limits))
        if not head.has_path:
            return Refusal(BadRequest("The target of the request is not a path."))
        if not head.has_method:
            return Refusal(BadRequest("The method of the request is not a token."))
        if (direct := port.direct) is not None:
            known = direct.know(head.method, head.target, head.headers, self._client_text, self._server, "2")
            if known is not None:
                return JobBeginning(direct, known, port.usual(known.cors), expects_continue=head.expects_continue)
        return lambda stream, ended: self._begin_asgi(stream, head, ended=ended)

    def _begin_asgi(self, stream: Stream, head: Http2Head, *, ended: bool) -> AsgiStream:
        request = AsgiStream(
            stream, head.scope(self._client, self._server), ended=ended, expects_continue=head.expects_continue
        )
        self._port.run(request)
        return request

    def _calls_of_port(self) -> Calls | None:
        if self._calls is None and self._port.calls is not None:
            self._calls = self._port.calls.connection()
            self._calls.protocol = self.protocol
        return self._calls

    def _learn_ends(self) -> None:
        self._client, self._server = socket_address(self.protocol.peer), socket_address(self.protocol.own)
        self._client_text = client_text(self._client)
