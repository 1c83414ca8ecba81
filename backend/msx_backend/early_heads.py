"""The heads of streams whose handlers take long for the first chunk."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple
from weakref import ReferenceType, ref

from msx_core.batch import Batch


class ExpectedStream(NamedTuple):
    """A reply of a batch that will be a stream; `due` is a `time.monotonic()` instant. The requests of a batch, which
    may be large, end with its call."""

    batch: ReferenceType[Batch]
    idx: int
    due: float

    def awaited(self) -> Batch | None:
        """The batch, while the reply has not begun."""
        batch = self.batch()
        return batch if batch is not None and batch.awaits(self.idx) else None


class EarlyHeads:
    """Sends the head of a stream that has not begun `seconds` after it was known that it will be one.

    The server passes it on, and sends the comments of server-sent events itself. `raw`: also the heads of streams that
    are none of those, in which no error can be told later.
    """

    def __init__(self, seconds: float, *, raw: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._raw, self._clock = seconds, raw, clock
        self._lock = threading.Lock()
        self._expected: list[ExpectedStream] = []
        """Streams in the order in which they are due."""

    def expect(self, batch: Batch, idx: int, *, events: bool) -> None:
        """Expect a stream. Any thread may call it."""
        if self._seconds and (events or self._raw):
            with self._lock:
                self._expected.append(ExpectedStream(ref(batch), idx, self._clock() + self._seconds))

    def tick(self) -> bool:
        """Called about once a second. Whether the sink was given something; a reply that has begun is forgotten."""
        now = self._clock()
        with self._lock:
            expected = [one for one in self._expected if one.awaited() is not None]
            self._expected = [one for one in expected if one.due > now]
        due = [(batch, one.idx) for one in expected if one.due <= now and (batch := one.awaited()) is not None]
        for batch, idx in due:
            batch.begin_stream(idx)
        return bool(due)
