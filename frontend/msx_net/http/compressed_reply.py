"""Whole replies that are compressed in a thread, of a family or of one service."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msx_core.replies.sink import Sink
from msx_core.service_errors import ServiceError
from msx_net.http.compression import accepted, compress, compressed_headers, is_compressible
from msx_net.http.failures import reported
from msx_net.http.known_head import KnownHead

Headers = list[tuple[str, str]]


class Compresses(Sink, Protocol):
    """The reply of HTTP."""

    known: KnownHead
    id: str
    response_complete: bool

    def refuse(self, error: ServiceError) -> None: ...

    def write_answer(
        self, status: int, phrase: str, own: Headers, data: bytes, more: Sequence[tuple[bytes, bytes]] = ()
    ) -> None: ...


class CompressedReply:
    """Stands around the reply of a service that compresses its own, whatever its family does. Streams stay as they
    are."""

    def __init__(self, sink: Compresses, encoding: str) -> None:
        self.sink, self.known, self._encoding = sink, sink.known, encoding
        self.start, self.chunk, self.end, self.fail = sink.start, sink.chunk, sink.end, sink.fail

    def answer(self, status: int, phrase: str, headers: Headers, data: bytes) -> None:
        if is_compressible(status, headers, len(data)):
            answer_compressed(self.sink, self._encoding, status, phrase, headers, data)
        else:
            self.sink.answer(status, phrase, headers, data)


def compressed(reply: Compresses) -> Sink:
    """The same, compressing a whole reply for a client that accepts it."""
    encoding = accepted(reply.known.head.header(b"accept-encoding"))
    return reply if encoding is None or reply.known.encoding is not None else CompressedReply(reply, encoding)


def answer_compressed(reply: Compresses, encoding: str, status: int, phrase: str, own: Headers, data: bytes) -> None:
    """Compress in a thread, then write the reply unless the client has left."""

    def done(compressing: asyncio.Future[bytes]) -> None:
        if reply.response_complete:
            return
        try:
            packed = compressing.result()
        except Exception as error:
            reply.refuse(reported(error, reply.id))
        else:
            reply.write_answer(status, phrase, own, packed, compressed_headers(encoding))

    asyncio.get_running_loop().run_in_executor(None, compress, data, encoding).add_done_callback(done)
