"""Runs the lines of one batch that have no outcome, as far as there is room for them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msx_core.priorities import HEADER, LOW, name_of
from msx_core.request_ids import new_request_id
from msx_core.service_errors import RequestCancelled, ServiceError
from msx_frontend.batches.input_lines import Line
from msx_frontend.batches.line_feed import LineFeed
from msx_frontend.batches.outcome import answered, unanswered
from msx_frontend.batches.rooms import LinePlace, LineTurns
from msx_frontend.batches.writer import OutcomeWriter
from msx_frontend.deferred.late_runs import LateRuns
from msx_frontend.deferred.records import Deferred, LateReply, RawHeaders
from msx_frontend.deferred.sink import LateSink
from msx_frontend.deferred.tries import Tries

CLIENT = "batch"
"""Stands for the client's address in the access log."""
HEADERS: RawHeaders = [(b"content-type", b"application/json"), (HEADER.encode(), name_of(LOW).encode())]
POLL = 0.02
"""Seconds until a line that found no room is tried again, and no other line of its batch has ended."""
LOOK = 1.0
"""Seconds between two looks whether the batch is to stop."""
STALLED = 60.0
"""Seconds in which a batch whose lines find no room gets no outcome: then it takes no other batch's place."""
STREAMS = "stream: a line of a batch is answered whole; leave it out, or set it to false."


class LineTry(Tries):
    """A line on its way."""

    __slots__ = ("line", "sink")

    def __init__(self, line: Line) -> None:
        super().__init__()
        self.line = line
        self.sink: LateSink | None = None


class LineParts(NamedTuple):
    """`names`: those in the path of the batch's endpoint."""

    batch: str
    owner: str
    endpoint: str
    names: Mapping[str, str]
    runs: LateRuns
    turns: LineTurns
    may_start: Callable[[], bool]
    """False while the server is stopping."""


class LinePass:
    def __init__(self, parts: LineParts, feed: LineFeed, writer: OutcomeWriter) -> None:
        self._parts, self._feed, self._writer = parts, feed, writer
        self._running: set[LineTry] = set()
        self._later: dict[LineTry, asyncio.TimerHandle] = {}
        """Lines that wait until they run again: no other line starts until then."""
        self._again: deque[LineTry] = deque()
        self._changed = asyncio.Event()
        self._is_over = False
        self._moved = time.monotonic()
        """When a line had an outcome last."""

    @property
    def is_busy(self) -> bool:
        return bool(self._running) or self._writer.is_busy

    @property
    def is_stalled(self) -> bool:
        """Whether none of its lines has run for a while: their model has no room, sleeps or is gone."""
        return not self._running and time.monotonic() - self._moved >= STALLED

    async def run(self, stops: Callable[[], bool]) -> None:
        """Returns when all lines have an outcome that is on the disk, or when `stops` says so; then those that run are
        cancelled. Raises OSError, WrongLine where the input cannot be read."""
        try:
            while not stops():
                if (one := await self._next()) is not None:
                    if not self._begin(one):
                        self._again.appendleft(one)
                        await self._wait(POLL)
                elif self._is_done:
                    break
                else:
                    await self._wait(LOOK)
        finally:
            self.close()
        await self._writer.flush()

    def close(self) -> None:
        """Stop those that run: they have no outcome."""
        self._is_over = True
        for timer in self._later.values():
            timer.cancel()
        for one in list(self._running):
            if one.sink is not None:
                one.sink.fail(RequestCancelled())

    def wake(self) -> None:
        """Look at once whether the batch is to stop, or a line finds a place."""
        self._changed.set()

    @property
    def _is_done(self) -> bool:
        return not (self._running or self._later or self._again) and self._feed.is_at_end

    async def _next(self) -> LineTry | None:
        """The next line that may run; None while there is none."""
        if not self._parts.may_start() or self._writer.is_full:
            return None
        if self._again:
            return self._again.popleft()
        line = None if self._later else await self._feed.next()
        return None if line is None else LineTry(line)

    async def _wait(self, seconds: float) -> None:
        """Until something has changed, for so many seconds at most."""
        self._changed.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    def _begin(self, one: LineTry) -> bool:
        """False where there is no room."""
        parts, line = self._parts, one.line
        if line.streams:
            self._writer.add(unanswered(line.custom_id, "stream_not_supported", STREAMS))
            return True
        place = parts.turns.take(parts.names, line.model, parts.owner, parts.batch, self.wake)
        if place is None:
            return False
        asked = Deferred(parts.endpoint.encode("latin-1"), HEADERS, line.body)
        try:
            one.sink = parts.runs.prepare(new_request_id(), asked, partial(self._ended, one, place), _ignore)
        except ServiceError as error:
            parts.turns.give_back(place)
            self._writer.add(unanswered(line.custom_id, "no_model", error.message))
            return True
        self._running.add(one)
        parts.runs.submit(one.sink, parts.owner, line.body)
        return True

    def _ended(self, one: LineTry, place: LinePlace, reply: LateReply, error: ServiceError | None) -> None:
        sink, one.sink = one.sink, None
        self._running.discard(one)
        self._parts.turns.give_back(place)
        if self._is_over or sink is None:
            return
        if one.goes_on(error):
            self._later[one] = asyncio.get_running_loop().call_later(one.wait(), self._try_again, one)
        else:
            self._moved = time.monotonic()
            self._writer.add_later(partial(answered, one.line.custom_id, sink.id, reply), len(reply.body))
        self._changed.set()

    def _try_again(self, one: LineTry) -> None:
        del self._later[one]
        self._again.append(one)
        self._changed.set()


def _ignore() -> None:
    """A reply has grown, of which nobody reads a part."""
