"""The events of a job's stream: numbered within its run, and told while it grows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import NamedTuple

from msx_core.replies.stream_heartbeat import EventTail
from msx_core.service_errors import BadRequest
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.errors import JobRanAgain
from msx_frontend.deferred.sink import LateSink
from msx_net.http.failures import failure_event

END = b"\n\n"


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


async def growing(entry: Entry, sink: LateSink, last: int) -> AsyncIterator[bytes]:
    """The events of this stream behind number `last`, while it grows. A job that runs again ends it with an error,
    since another answer begins."""
    run, read, number = entry.head.run, 0, 0
    while True:
        is_open = entry.is_open
        if is_open and entry.sink is not sink:
            yield failure_event(sink.known.family, JobRanAgain(), EventTail())
            return
        data = bytes(sink.data[read:])
        found, size = numbered(data, run, last, number)
        number += data.count(END)
        read += size
        if found:
            yield b"".join(found)
        if not is_open:
            return
        await entry.wait()


def numbered(data: bytes, run: str, last: int, before: int = 0) -> tuple[list[bytes], int]:
    """The whole events in `data` behind number `last`, each with its id, and the bytes of all whole ones. `before`
    is the number of events before them."""
    *events, rest = data.split(END)
    found = [
        b"id: %b-%d\n%b%b" % (run.encode(), number, event, END)
        for number, event in enumerate(events, before + 1)
        if number > last
    ]
    return found, len(data) - len(rest)
