"""Complete replies that are sent in one frame."""

from __future__ import annotations

from msx_protocol import LARGE, CompleteReplies, encode_frame
from msx_sdk._internal.reply_head import ReplyHead

Head = tuple[int, str, list[tuple[str, str]]]


class GatheredAnswers:
    """Gathers replies with the same head, of fewer than LARGE bytes in all, so that the receiver reads the frame
    together with others."""

    def __init__(self) -> None:
        self._head: Head = 0, "", []
        self._numbers: list[int] = []
        self._sizes: list[int] = []
        self._body = bytearray()

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def take(self, number: int, reply: ReplyHead, body: bytes | bytearray) -> bool:
        """Copies `body`. Returns False if it does not fit the gathered ones: then their `frame` must be sent first."""
        head = reply.status, reply.phrase, reply.headers or []
        if not self._numbers:
            self._head = reply.status, reply.phrase, [*head[2]]  # the handler may go on to change its own
        elif head != self._head or len(self._body) + len(body) >= LARGE:
            return False
        self._numbers.append(number)
        self._sizes.append(len(body))
        self._body += body
        return True

    def frame(self) -> bytes:
        """The frame of the replies that were taken since the last one."""
        frame = encode_frame(CompleteReplies(self._numbers, self._sizes, *self._head), self._body)
        self._numbers, self._sizes, self._body = [], [], bytearray()
        return frame
