"""One rank of a worker group: its streams as messages, what it prints, and how far it has come."""

import asyncio
import contextlib
from functools import partial
from typing import Any, Protocol

from msgspec import structs

from msx_frontend.workers.launcher import ExitStatus, LaunchedRank, RankHandsOver, RankStatus
from msx_frontend.workers.output import WorkerOutput
from msx_protocol import Load, Loaded, LoadProgress, MetricSample, Pong, ToFrontend, encode_frame
from msx_protocol.channel import Channel
from msx_protocol.segments import SegmentUse

UNREAD = 1.0
"""Seconds that what an ended rank has written has to arrive. A process of its that lives on may hold its streams."""


class RankEvents(Protocol):
    """Events of each rank, for its group, by its number."""

    def received(self, rank: int, message: ToFrontend, body: bytes) -> None: ...

    def ponged(self, rank: int, pong: Pong) -> None: ...

    def printed(self, rank: int, sample: MetricSample) -> None:
        """A metric, on its standard output."""

    def exited(self, rank: int, status: ExitStatus) -> None:
        """Called once, after all that the rank had written was read."""


class Rank:
    """Nothing is sent or known before `connect`."""

    def __init__(self, load: Load, worker: int, events: RankEvents) -> None:
        """`worker`: the replica's number, for the log."""
        self.rank = load.rank
        self._load = load
        self._events = events
        self._launched: LaunchedRank | None = None
        self._end: asyncio.Task[None] | None = None
        self._read_all = asyncio.Event()
        self.phase = "starting the process"
        self.loaded = False
        self.exited = False
        self._handed_over = self._left = False
        labels = {"model": load.model_name, "version": load.model_version, "worker": worker, "rank": load.rank}
        self._labels: dict[str, Any] = labels
        printed = partial(events.printed, self.rank)
        self.stdout = WorkerOutput(labels, "stdout", printed)
        self.stderr = WorkerOutput(labels, "stderr", printed)
        self.data: Channel[ToFrontend] = Channel(ToFrontend, partial(events.received, self.rank), self._data_closed)
        self.control: Channel[Pong] = Channel(Pong, self._ponged, lambda error: None)

    def begin(self, launched: LaunchedRank) -> None:
        """It has been started: from now on its end is told."""
        self._launched = launched
        if host := launched.describe().host:
            self._labels["host"] = host  # where it is not this machine
        self._load = launched.adapt(self._load)
        self._end = asyncio.create_task(self._watch_end(launched), name=f"rank-{self.rank}")

    async def connect(self) -> None:
        """Raises OSError."""
        assert self._launched is not None
        await self._launched.data.connect(self.data)
        await self._launched.control.connect(self.control)
        await self._launched.stdout.connect(self.stdout)
        await self._launched.stderr.connect(self.stderr)

    def resume(self, data: bytes, control: bytes) -> None:
        """It serves, and another frontend has read these beginnings of its frames. Called before `connect`."""
        self.phase, self.loaded = "", True
        self.data.feed(data)
        self.control.feed(control)

    def load(self) -> None:
        self.data.write(encode_frame(self._load))

    def share(self, use: SegmentUse) -> None:
        """Before `load`: the shared memory that it may use."""
        self._load = structs.replace(self._load, segments=use)

    def loads(self, message: LoadProgress | Loaded) -> None:
        """It has told how far it has come."""
        if isinstance(message, LoadProgress):
            self.phase = message.phase
        else:
            self.phase, self.loaded = "", True

    def kill(self) -> None:
        if self._launched is not None:
            self._launched.kill()

    @property
    def hands_over(self) -> bool:
        """Another frontend may take it over."""
        return isinstance(self._launched, RankHandsOver)

    @property
    def release(self) -> str:
        """Release of the server that has started it, where another one has taken it over; else empty."""
        return self._launched.release if isinstance(self._launched, RankHandsOver) else ""

    @property
    def old(self) -> bool:
        """Another one is to take its place."""
        return isinstance(self._launched, RankHandsOver) and self._launched.old

    def hand_over(self) -> None:
        """Another frontend has its connections; those of rank 0 lead there from now on."""
        assert isinstance(self._launched, RankHandsOver)
        self._launched.hand_over()
        self._handed_over = True
        self.stdout.close()
        self.stderr.close()

    def leave(self) -> None:
        """Close its connections; it waits for another frontend."""
        if self.hands_over:
            self.hand_over()
        self._left = True
        self.data.close()
        self.control.close()

    async def gone(self) -> None:
        """Returns when its end has been told and nothing of it is left here."""
        if self._handed_over:
            return
        if self._launched is not None and self._end is not None:
            await asyncio.shield(self._end)  # others wait for it, too, when this one is cancelled
            await self._launched.gone()

    async def memory_taken(self) -> int:
        """Bytes of it, and of all that it has started, that other processes do not share."""
        return 0 if self._launched is None else await self._launched.memory_taken()

    @property
    def pid(self) -> int:
        """Number of the process that was started, for messages; 0 if there was none."""
        return 0 if self._launched is None else self._launched.pid

    @property
    def status(self) -> RankStatus:
        return RankStatus() if self._launched is None else self._launched.describe()

    @property
    def crash_cause(self) -> str:
        """Last message on its stderr: for a crash, its cause."""
        return str(self.stderr.crash_cause)

    def describe(self) -> dict[str, Any]:
        state, status = "READY" if self.loaded else "ENDED" if self.exited else "LOADING", self.status
        described = {
            "rank": self.rank,
            "pid": status.pid,
            "memoryUsage": status.memory,
            "state": state,
            "host": status.host or None,
            "phase": self.phase or None,
        }
        return {name: value for name, value in described.items() if value is not None}

    def _ponged(self, pong: Pong, body: bytes) -> None:
        self._events.ponged(self.rank, pong)

    def _data_closed(self, error: Exception | None) -> None:
        self._read_all.set()
        if self._left:
            return
        if self._handed_over:
            self._events.exited(self.rank, ExitStatus(0, lost="the server that has taken it over has ended"))
        elif error is not None and self._launched is not None:
            self._launched.cut(error)

    async def _watch_end(self, launched: LaunchedRank) -> None:
        status = await launched.ended
        if not status.lost:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._read_all.wait(), UNREAD)
        await asyncio.sleep(0)  # a last look at the output, which is read after the data
        for stream in (self.data, self.control, self.stdout, self.stderr):
            stream.close()
        self.loaded, self.exited = False, True
        self._events.exited(self.rank, status)
