"""The calls of one connection: the headers of a stream begin each."""

from collections.abc import Mapping

from msx_net.grpc.direct.blocks import not_a_call, refusal
from msx_net.grpc.direct.compression import IDENTITY
from msx_net.grpc.direct.head import CONTENT_TYPE, CallHead
from msx_net.grpc.direct.job_call import JobCall
from msx_net.grpc.direct.open_calls import OpenCalls
from msx_net.grpc.direct.refused_call import RefusedCall
from msx_net.grpc.direct.task_call import TaskCall
from msx_net.grpc.refused import NotACall
from msx_net.grpc.served import ServedMethod
from msx_net.http2.answered import ANSWERED
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.headers import Headers
from msx_net.http2.stream import Stream
from msx_net.http2.stream_events import StreamEvents

KEPT_HEADS, LONGEST_HEAD = 64, 8192
"""How many heads of a connection are kept, and the bytes of the longest."""


class CallConnection:
    protocol: Http2Protocol

    def __init__(self, methods: Mapping[bytes, ServedMethod], calls: OpenCalls) -> None:
        self._methods, self._calls = methods, calls
        self._heads: dict[int, CallHead] = {}
        """Heads by the identity of their headers, which they hold: the same block of a connection gives the same
        list."""
        self._client = ""

    def accept(self, stream: Stream, headers: Headers, ended: bool) -> StreamEvents:
        head = self._heads.get(id(headers)) or self._read(headers)
        if head.served is None:
            return _refuse(stream, head)
        call = self._call(stream, head, head.served)
        if ended:
            call.ended()
        return call

    @staticmethod
    def takes(headers: Headers) -> bool:
        """Whether a request is a call, on a port that has other requests, too."""
        return any(name == b"content-type" and CONTENT_TYPE.fullmatch(value) for name, value in headers)

    def _call(self, stream: Stream, head: CallHead, served: ServedMethod) -> JobCall | TaskCall | RefusedCall:
        """The key is judged here, once a call: before a byte of its messages is held."""
        sent = head.sent_key
        try:
            key = None if sent is None else sent.take()
        except Exception as error:
            found = None if sent is None else sent.key
            return RefusedCall(self._calls, stream, head, served, self.client, found, error)
        kind = TaskCall if served.method.job is None or head.encoding != IDENTITY else JobCall
        return kind(self._calls, stream, head, served, self.client, key)

    def _read(self, headers: Headers) -> CallHead:
        head = CallHead(headers, self._methods, self._server)
        if sum(len(name) + len(value) for name, value in headers) <= LONGEST_HEAD:
            if len(self._heads) >= KEPT_HEADS:
                self._heads.clear()
            self._heads[id(headers)] = head
        return head

    @property
    def _server(self) -> tuple[str, int] | None:
        own = self.protocol.own
        return own[:2] if isinstance(own, tuple) else None

    @property
    def client(self) -> str:
        """Address for log lines; known when the first call comes."""
        if not self._client:
            peer = self.protocol.peer
            host, port = peer[:2] if isinstance(peer, tuple) else ("", 0)  # a Unix socket's has no name
            self._client = f"{host}:{port}"
        return self._client


def _refuse(stream: Stream, head: CallHead) -> StreamEvents:
    refused = head.refused
    assert refused is not None
    if isinstance(refused, NotACall):
        stream.send_whole(*not_a_call(refused, bodiless=(b":method", b"HEAD") in head.headers))
    else:
        stream.send_headers(refusal(refused), end=True)
    return ANSWERED
