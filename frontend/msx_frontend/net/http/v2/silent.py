"""Owners of streams to which nothing of the client matters any more."""

from __future__ import annotations

from msx_frontend.net.http2.errors import ErrorCode
from msx_frontend.net.http2.stream import Stream


class AnsweredStream:
    """Its answer was complete when it began."""

    def data(self, data: bytes) -> None: ...

    def ended(self) -> None: ...

    def lost(self, reason: str) -> None: ...

    def drained(self) -> None: ...

    def too_slow(self, reason: str) -> None: ...


ANSWERED = AnsweredStream()


class CutStream(AnsweredStream):
    """Its answer breaks off: RST_STREAM tells the client so, behind what was written of it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        if not stream.blocked:
            self.drained()

    def drained(self) -> None:
        self._stream.events = None
        self._stream.reset(ErrorCode.INTERNAL_ERROR)
