"""HTTP/2 on a REST port: what its listener makes connections of."""

from __future__ import annotations

import asyncio

from msx_net.connections.limits import ConnectionLimits
from msx_net.connections.open_connections import ListenerConnections
from msx_net.http.app import AsgiApp
from msx_net.http.direct import Direct
from msx_net.http.head_errors import HeadTooLarge
from msx_net.http.v2.connection import RequestConnection
from msx_net.http.v2.port import AnswersCalls, Port
from msx_net.http.wire import error_bytes
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.header_blocks import encode_headers
from msx_net.http2.limits import LARGEST_BODY, Limits, windows

MESSAGE_PREFIX = 5
"""Bytes before each message of gRPC."""


class RestHttp2:
    """Families, and gRPC's services once `calls` are set."""

    def __init__(self, app: AsgiApp, direct: Direct | None, limits: ConnectionLimits, max_request_size: int) -> None:
        """`direct` answers jobs past `app`."""
        self._port = Port(app, direct, limits)
        self._limits = http2_limits(limits, max_request_size)

    def answer_calls(self, calls: AnswersCalls) -> None:
        """Requests that are calls of gRPC are answered by these services, and all others by the families."""
        self._port.calls = calls

    def connect(self, connections: ListenerConnections) -> asyncio.Protocol:
        requests = RequestConnection(self._port)
        requests.protocol = Http2Protocol(requests.accept, self._limits, connections.discard, connections.add)
        return requests.protocol

    async def stop(self) -> None:
        """The connections are gone."""
        await self._port.stop()


def http2_limits(limits: ConnectionLimits, max_request_size: int) -> Limits:
    """A message of gRPC has room before it is taken, as has a body."""
    body = error_bytes(HeadTooLarge(limits))
    head = [(b":status", b"%d" % HeadTooLarge.status), (b"content-type", b"application/json")]
    return Limits(
        **windows(min(max_request_size + MESSAGE_PREFIX, LARGEST_BODY)),
        max_header_list=limits.max_request_head_size,
        too_large=encode_headers([*head, (b"content-length", b"%d" % len(body))]),
        too_large_body=body,
        **limits.http2,
        idle_timeout=limits.keep_alive_timeout,
    )
