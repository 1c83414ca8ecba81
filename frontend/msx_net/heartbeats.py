"""The open streams of a server, of which those that are silent are to send something."""

import asyncio
from collections.abc import Callable, Iterator

from msx_core.replies.stream_heartbeat import StreamHeartbeat
from msx_net.connections.sweep import EVERY, Sweep

LOOKS = 4
"""Looks at a stream before it counts as silent, where that is sooner than the usual looks are."""
LEAST = 0.05
"""Seconds between two looks at least."""
AT_ONCE = 100
"""Streams that may all write in one turn of the loop: one or two milliseconds."""


class StreamHeartbeats:
    """`seconds` of silence after which a stream sends something (the key stream_heartbeat); 0: none does.

    No stream has a timer of its own: all are looked at together, and nothing runs while none is open.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._open: set[StreamHeartbeat] = set()
        self._sweep = Sweep(self._all, min(EVERY, max(seconds / LOOKS, LEAST)), AT_ONCE)

    def open(self, beat: Callable[[], None]) -> StreamHeartbeat:
        """Call `beat` whenever the stream has been silent, until the heartbeat is closed."""
        made = StreamHeartbeat(beat, self._seconds, asyncio.get_running_loop().time(), self._open)
        if self._seconds:
            self._open.add(made)
            self._sweep.start()
        return made

    def _all(self) -> Iterator[StreamHeartbeat]:
        return iter(list(self._open))


OFF = StreamHeartbeats(0.0)
