"""How much of a streamed reply a worker may send before the client has taken some of it."""

from collections.abc import Callable

FIRST = 1 << 16
"""Bytes that every stream may have waiting. The worker knows them: a reply of half as many costs no frame."""

WHOLE = 64
"""Streams that may have `stream_buffer_size` waiting at the same time; each further one has FIRST."""

BEHIND = 16
"""A stream whose handler does not wait for it is cut when this many times `stream_buffer_size` wait for its client."""


class StreamBuffers:
    """Limits of the streamed replies that one server holds: `size` bytes of each (the key stream_buffer_size), and of
    all together WHOLE times that beside FIRST of each."""

    __slots__ = ("first", "left", "most", "size")

    def __init__(self, size: int = 1 << 20) -> None:
        self.size, self.first = size, min(FIRST, size)
        self.left = (size - self.first) * WHOLE
        """Bytes that no stream has reserved."""
        self.most = size * BEHIND
        """Bytes of one stream that may ever wait."""


class StreamCredit:
    """Credit of one reply. `grant` is told each new limit: how many bytes its chunks may have in all.

    Who holds the chunks until the client takes them calls `took`, and `close` at last. It also says whether they are
    `spent`: what waits fills the `room`. Counting costs nothing for a chunk, only for what is taken.

    The worker sends a chunk whole once it is below the limit, so that a stream holds one chunk more at most. The limit
    is raised when half of what the stream may hold was taken; it is never lowered.
    """

    __slots__ = ("_grant", "_limit", "_next", "_reserved", "_taken", "buffers", "held", "spent")

    def __init__(self, buffers: StreamBuffers, grant: Callable[[int], object]) -> None:
        self.buffers = buffers
        self._grant: Callable[[int], object] | None = grant
        self._taken = self._reserved = 0
        self._limit = buffers.first
        self._next = buffers.first // 2
        """The limit may be raised when so many bytes were taken."""
        self.held = False
        """The chunks are held. Otherwise they are taken at once, and nothing has to be reserved for them."""
        self.spent = False
        """The handler waits with its next chunk."""

    @property
    def room(self) -> int:
        """The worker sends no chunk while so many bytes wait."""
        return self._limit - self._taken

    def hold(self, waiting: int) -> None:
        """Hold the chunks from now on, also those that wait by now, of so many bytes."""
        self.held = True
        self._taken -= waiting

    def took(self, size: int) -> None:
        """The client has taken so many bytes."""
        self._taken += size
        if self._taken >= self._next and self._grant is not None:
            self._raise(self._grant)

    def end(self) -> None:
        """The worker sends no more. What it has sent may still be held."""
        self._grant, self.spent = None, False

    def close(self) -> None:
        """Nothing is held any more. Idempotent."""
        self.end()
        self.buffers.left += self._reserved
        self._reserved = 0

    def _raise(self, grant: Callable[[int], object]) -> None:
        window = self._reserve() if self.held else self.buffers.size
        if self._taken + window - self._limit >= window // 2:
            self._limit = self._taken + window
            grant(self._limit)
        self._next = self._limit - window // 2

    def _reserve(self) -> int:
        """Returns how much the stream may hold: all that it is allowed, or what the other streams leave of that."""
        buffers = self.buffers
        pledged = max(self._limit - self._taken - buffers.first, 0)  # the worker may have sent it
        buffers.left += self._reserved
        self._reserved = max(pledged, min(buffers.size - buffers.first, buffers.left))
        buffers.left -= self._reserved
        return buffers.first + self._reserved
