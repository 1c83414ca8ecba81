"""Handlers of a stream's headers, where it is not an app of ASGI or a call of gRPC."""

from __future__ import annotations

from msx_core.service_errors import ServiceError
from msx_net.http.direct import Direct
from msx_net.http.failures import plain_failure
from msx_net.http.known_head import KnownHead
from msx_net.http.v2.blocks import CONTINUE, UsualBlock, reply_block
from msx_net.http.v2.reply import Http2Reply
from msx_net.http2.answered import ANSWERED
from msx_net.http2.stream import Stream
from msx_net.http2.stream_events import StreamEvents


class JobBeginning:
    """A job that the stream itself answers."""

    __slots__ = ("_direct", "_expects_continue", "_known", "_usual")

    def __init__(self, direct: Direct, known: KnownHead, usual: UsualBlock, *, expects_continue: bool) -> None:
        self._direct, self._known, self._usual = direct, known, usual
        self._expects_continue = expects_continue

    def __call__(self, stream: Stream, ended: bool) -> StreamEvents:
        """`ended`: the request has no body."""
        reply = Http2Reply(stream, self._direct, self._known, self._usual)
        if self._known.checked:
            self._check(reply)
        if self._known.refusal is not None:
            reply.refuse(self._known.refusal)
        if not reply.response_complete:
            if ended:
                reply.ended()
            elif self._expects_continue:
                stream.send_headers(CONTINUE)
        return ANSWERED if reply.response_complete else reply

    def _check(self, reply: Http2Reply) -> None:
        try:
            self._direct.check(self._known)
        except ServiceError as error:
            reply.refuse(error)


class Refusal:
    """Refusal of a request that is for no family."""

    __slots__ = ("_error",)

    def __init__(self, error: ServiceError) -> None:
        self._error = error

    def __call__(self, stream: Stream, ended: bool) -> StreamEvents:
        headers, body = plain_failure(self._error)
        stream.send_whole(reply_block(self._error.status, headers), body)
        return ANSWERED
