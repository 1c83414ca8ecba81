"""The events of a job's stream: numbered within its run, and told while it grows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import NamedTuple

from msx_core.replies.stream_heartbeat import EventTail
from msx_core.service_errors import BadRequest
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.errors import JobRanAgain
from msx_frontend.deferred.sink import LateSink
from msx_net.http.failures import failure_event

END = re.compile(rb"\n\r?\n|\r\r")
"""The end of an event: an empty line, whatever ends lines."""
LONGEST_END = b"\n\r\n"
AT_ONCE = 1 << 16
"""Bytes that are looked through before others have their turn on the loop."""


class LastEvent(NamedTuple):
    """The last event that a client has read: its number, and the run that it is of; "" where it has read none."""

    run: str = ""
    number: int = 0

    def check(self, run: str) -> None:
        """Raises JobRanAgain where it is of another run."""
        if self.run and self.run != run:
            raise JobRanAgain


def last_event(text: str) -> LastEvent:
    """The header Last-Event-ID. Raises BadRequest."""
    if not text:
        return LastEvent()
    found = re.fullmatch(r"([0-9a-f]{1,16})-([0-9]{1,9})", text)
    if found is None:
        raise BadRequest(f"Last-Event-ID: expected the id of an event of this job, not {text[:40]!r}.")
    return LastEvent(found[1], int(found[2]))


class NumberedEvents:
    """Reads the whole events of a stream, which may grow, a piece at a time: each with its id."""

    def __init__(self, data: bytes | bytearray, run: str, last: int) -> None:
        """Leave out those up to number `last`."""
        self._data, self._run, self._last = data, run.encode(), last
        self._number = self._start = self._searched = 0
        """The number, from 0, and the start of the event that is not whole; how far its end was looked for."""

    @property
    def is_behind(self) -> bool:
        return self._searched < len(self._data)

    def read(self) -> bytes:
        """The events that end in the next AT_ONCE bytes."""
        found: list[bytes | bytearray] = []
        at = max(self._start, self._searched - len(LONGEST_END) + 1)
        self._searched = min(self._searched + AT_ONCE, len(self._data))
        while (end := END.search(self._data, at, self._searched)) is not None:
            self._number, at = self._number + 1, end.end()
            if self._number > self._last:
                found += (b"id: %b-%d\n" % (self._run, self._number), self._data[self._start : at])
            self._start = at
        return b"".join(found)


async def whole(data: bytes, run: str, last: int) -> AsyncIterator[bytes]:
    """The events of a stream that has ended behind number `last`."""
    events = NumberedEvents(data, run, last)
    while events.is_behind:
        if found := events.read():
            yield found
        await asyncio.sleep(0)


async def growing(entry: Entry, sink: LateSink, last: int) -> AsyncIterator[bytes]:
    """The events of this stream behind number `last`, while it grows. A job that runs again ends it with an error,
    since another answer begins."""
    events = NumberedEvents(sink.data, entry.head.run, last)
    while events.is_behind or entry.is_open:
        if entry.is_open and entry.sink is not sink:
            yield failure_event(sink.known.family, JobRanAgain(), EventTail())
            return
        if not events.is_behind:
            await entry.wait()
            continue
        if found := events.read():
            yield found
        await asyncio.sleep(0)
