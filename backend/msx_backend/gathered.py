"""Complete replies that are sent in one frame."""

from msx_core.reply_head import PLAIN, PLAIN_JSON, ReplyHead
from msx_protocol import LARGE, Chunks, CompleteReplies, encode_frame

Head = tuple[int, str, list[tuple[str, str]]]


class GatheredAnswers:
    """Gathers replies with the same head, of fewer than LARGE bytes in all, so that the receiver reads the frame
    together with others."""

    def __init__(self) -> None:
        self._head: Head = 0, "", []
        self._shared: ReplyHead | None = None
        """The head, if it is one of those that do not change."""
        self.numbers: list[int] = []
        """Numbers of the requests whose replies it holds."""
        self._sizes: list[int] = []
        self._body = bytearray()

    def take(self, number: int, reply: ReplyHead, body: bytes | bytearray) -> bool:
        """Copies `body`. Returns False if it does not fit the gathered ones: then their `frame` must be sent first."""
        if not self.numbers:
            self._shared = reply if reply is PLAIN or reply is PLAIN_JSON else None
            self._head = reply.status, reply.phrase, [*(reply.headers or [])]  # the handler may go on to change its own
        elif len(self._body) + len(body) >= LARGE or not (reply is self._shared or self._has_head(reply)):
            return False
        self.numbers.append(number)
        self._sizes.append(len(body))
        self._body += body
        return True

    def _has_head(self, reply: ReplyHead) -> bool:
        return (reply.status, reply.phrase, reply.headers or []) == self._head

    def frame(self) -> bytes:
        """The frame of the replies that were taken since the last one."""
        frame = encode_frame(CompleteReplies(self.numbers, self._sizes, *self._head), self._body)
        self.numbers, self._sizes, self._body = [], [], bytearray()
        return frame


class GatheredChunks:
    """Gathers pieces of replies that have begun and not ended, of fewer than LARGE bytes in all."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        """Numbers of the requests whose pieces it holds."""
        self._sizes: list[int] = []
        self._body = bytearray()

    def take(self, number: int, body: bytes | bytearray) -> bool:
        """Copies `body`. Returns False if it does not fit: then the `frame` of the gathered ones must be sent first."""
        if self.numbers and len(self._body) + len(body) >= LARGE:
            return False
        self.numbers.append(number)
        self._sizes.append(len(body))
        self._body += body
        return True

    def frame(self) -> bytes:
        """The frame of the pieces that were taken since the last one."""
        frame = encode_frame(Chunks(self.numbers, self._sizes), self._body)
        self.numbers, self._sizes, self._body = [], [], bytearray()
        return frame
