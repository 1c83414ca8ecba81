"""The owner of a stream whose answer breaks off."""

from __future__ import annotations

from msx_net.http2.answered import AnsweredStream
from msx_net.http2.errors import ErrorCode
from msx_net.http2.stream import Stream


class CutStream(AnsweredStream):
    """Its answer breaks off: RST_STREAM tells the client so, behind what was written of it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        if not stream.blocked:
            self.drained()

    def drained(self) -> None:
        self._stream.events = None
        self._stream.reset(ErrorCode.INTERNAL_ERROR)
