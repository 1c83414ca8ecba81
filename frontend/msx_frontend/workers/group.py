"""A worker group: all the ranks of one replica, which start, serve, fail and end as one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from msx_core.generation import Capabilities
from msx_core.kserve.types import Signature
from msx_core.methods import Methods
from msx_core.module_names import first_that_hides
from msx_frontend.workers import group_end
from msx_frontend.workers.batch_runner import BatchEvents, BatchRunner
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.group_handover import GroupHandover
from msx_frontend.workers.group_state import GroupState
from msx_frontend.workers.launcher import ExitStatus, GroupSpec, LaunchedRank, Launcher
from msx_frontend.workers.load_errors import LoadErrors
from msx_frontend.workers.rank import Rank
from msx_frontend.workers.rank_group import RankGroup
from msx_frontend.workers.segments.allowance import SegmentSocket
from msx_frontend.workers.segments.port import SegmentPort
from msx_frontend.workers.watchdog import Watchdog
from msx_protocol import (
    Broken,
    CallDone,
    Chunk,
    Chunks,
    CompleteReplies,
    Drain,
    Dropped,
    Failed,
    Joined,
    Lent,
    Loaded,
    LoadFailed,
    LoadProgress,
    MetricInfo,
    MetricSample,
    Pong,
    Returned,
    ToFrontend,
    encode_frame,
)


class GroupEvents(BatchEvents, Protocol):
    """Events of a group, for its owner, on the loop's thread."""

    def group_replied(self, group: WorkerGroup) -> None:
        """Its first good reply."""

    def group_ended(self, group: WorkerGroup) -> None: ...

    def forms_arrived(self, forms: list[MetricInfo]) -> None:
        """New metrics whose samples may follow."""

    def samples_arrived(self, group: WorkerGroup, samples: list[MetricSample]) -> None: ...


class WorkerGroup:
    """Knows streams, output and ends of its ranks. How and where they run is the launcher's concern."""

    def __init__(self, spec: GroupSpec, launcher: Launcher, events: GroupEvents) -> None:
        self.spec = spec
        self._launcher = launcher
        self._events = events
        self.state = GroupState.STARTING
        self.start_time = time.time()
        self.load_seconds = 0.0
        self.capabilities = Capabilities()
        self.signature = Signature()
        self.methods: Methods = ()
        self.sequential = ""
        """Why its batches do not overlap: a sentence without its full stop."""
        self._drained = group_end.asked_to_stop()
        """How it ends when it is drained."""
        self.ranks = RankGroup(spec, self)
        self.runner = BatchRunner(spec, self.ranks.leader, events, self._replied)
        self._port: SegmentPort | None = None
        self._watchdog = Watchdog(spec, self.ranks, self.runner, self._end)
        self.handover = GroupHandover(self.ranks, self.runner, self._watchdog)
        self._load_errors = LoadErrors(len(self.ranks), self._end)
        loop = asyncio.get_running_loop()
        self._loaded: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[GroupEnd] = loop.create_future()

    # -- life --

    async def start(self) -> GroupEnd | None:
        """Returns when the model is loaded, or with the reason why it is not."""
        try:
            launched = await self._launched()
            self.ranks.begin(launched)
            self._share(launched[0].segments)
            if (handed := self.handover.restore()) is not None:
                self._describe_handler(handed.loaded)
                self._formed(handed.forms)
            await self.ranks.connect()
            await self.handover.connect()
        except OSError as error:
            return self._end(group_end.not_started(error))
        if self.state is not GroupState.STARTING:
            self.ranks.kill()  # the group ended meanwhile: what was started after that must end, too
            return self._ended.result()
        self.state = GroupState.LOADING
        self._watchdog.started(taken_over=self.ranks.are_taken_over and not self.handover.resumes)
        if not self.handover.resumes:
            self.ranks.load()
        self._ready_when_all_are()  # they may have told while they were connected: those of a frontend before this one
        await self._first(self._loaded, timeout=self.spec.startup_timeout)
        if not self._loaded.done() and not self._ended.done():
            self._end(group_end.load_too_slow(self.spec.startup_timeout, self.ranks.slowest))
        return self._ended.result() if self._ended.done() else None

    def _share(self, offered: SegmentSocket | None) -> None:
        """Large values of a stage stand in shared memory, where the launcher offers a socket for it."""
        if offered is not None:
            port = self._port = SegmentPort(offered)
            self.runner.share(port)
            self.ranks.leader.share(port.use)

    async def _launched(self) -> Sequence[LaunchedRank]:
        """The end of the group ends the launch as well. Raises OSError."""
        spec = replace(self.spec, told=self.ranks.told, resumed=self.handover.resume)
        launch = asyncio.ensure_future(self._launcher.launch(spec))
        try:
            await self._first(launch)
        finally:
            launch.cancel()  # does nothing when it is done
        with contextlib.suppress(asyncio.CancelledError):
            return await launch
        raise ConnectionAbortedError("the worker was stopped meanwhile")

    async def _first(self, awaited: asyncio.Future[Any], timeout: float | None = None) -> None:
        """Until it is done, or the group ends, or `timeout` seconds have passed."""
        waiting: set[asyncio.Future[Any]] = {awaited, self._ended}
        await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)

    async def wait_ended(self) -> GroupEnd:
        """Until every process of the group is gone and its folder removed."""
        end = await asyncio.shield(self._ended)
        await self.ranks.gone()
        return end

    async def drain(self, limit: float | None, end: GroupEnd | None = None) -> None:
        """No new work; what runs may finish for `limit` seconds, then the rest fails; None: it may finish. Returns when
        it is gone.

        A second call may set another limit. `end` says why, where it was not told to stop.
        """
        self._drained = end or self._drained
        if self.state is GroupState.READY:
            self._become(GroupState.DRAINING)
            self.runner.flush()
            self.ranks.leader.data.write(encode_frame(Drain()))
        if self.state is GroupState.DRAINING:
            await asyncio.wait({self._ended}, timeout=limit)
        self._end(self._drained)
        await self.wait_ended()

    def _become(self, state: GroupState) -> None:
        self.state = state
        self.runner.ready = state is GroupState.READY

    # -- what the ranks say --

    def received(self, rank: int, message: ToFrontend, body: bytes) -> None:
        runner = self.runner
        runner.progressed = self._watchdog.last_heard[rank] = time.monotonic()
        if isinstance(message, CompleteReplies):
            runner.answered(message, body)
        elif isinstance(message, Chunks):
            runner.chunks(message, body)
        elif isinstance(message, Chunk):
            runner.chunk(message, body)
        elif isinstance(message, Dropped):
            runner.failed(message)
        elif isinstance(message, Failed):
            self._watchdog.failed(message)
        elif isinstance(message, Joined):
            runner.joined(message)
        elif isinstance(message, Returned):
            runner.returned(message)
        elif isinstance(message, Lent):
            runner.lent(message)
        elif isinstance(message, CallDone):
            self._watchdog.reported(rank, message)
            self._ready_when_all_are()
        elif isinstance(message, Broken):
            self._end(group_end.broken(message.reason, self.ranks.named(rank)))
        else:
            self._loads(self.ranks[rank], message)

    def _loads(self, rank: Rank, message: ToFrontend) -> None:
        if isinstance(message, LoadProgress):
            rank.loads(message)
        elif isinstance(message, Loaded):
            rank.loads(message)
            self.load_seconds = max(message.seconds, self.load_seconds)
            if rank is self.ranks.leader:
                self._describe_handler(message)
                self._watchdog.forget_calls(message.call)
            self._ready_when_all_are()
        elif isinstance(message, LoadFailed):
            self._load_errors.failed(rank.rank, group_end.load_failed(message, self.ranks.named(rank.rank)))

    def _describe_handler(self, message: Loaded) -> None:
        self.handover.loaded, self.load_seconds = message, max(message.seconds, self.load_seconds)
        self.runner.configure(message)
        self.sequential = message.sequential
        self.capabilities = msgspec.convert(message.capabilities, Capabilities)
        self.signature = msgspec.convert(message.signature, Signature)
        self.methods = msgspec.convert(message.methods, Methods)

    def _ready_when_all_are(self) -> None:
        """The other ranks report that they are loaded before they warm up together with the leader."""
        if self.state is GroupState.LOADING and self.ranks.all_loaded and not self._watchdog.in_call:
            self._become(GroupState.READY)
            self._watchdog.ready()
            self._loaded.set_result(None)

    def ponged(self, rank: int, pong: Pong) -> None:
        self._watchdog.ponged(rank, pong, time.monotonic())
        if pong.forms and rank == 0:
            self._formed(pong.forms)
        if pong.samples and rank == 0:  # the others record the same calls
            self._events.samples_arrived(self, pong.samples)

    def _formed(self, forms: list[MetricInfo]) -> None:
        self.handover.forms += forms
        self._events.forms_arrived(forms)

    def printed(self, rank: int, sample: MetricSample) -> None:
        if rank == 0:
            self._events.samples_arrived(self, [sample])

    def _replied(self) -> None:
        self._events.group_replied(self)

    # -- end --

    def exited(self, rank: int, status: ExitStatus) -> None:
        if self.state is GroupState.DRAINING and status.code == 0:
            if self.ranks.all_exited:
                self._end(self._drained)
        elif status.lost:
            self._end(group_end.lost(rank, status.lost))
        elif not self._load_errors.explains(rank):
            ended, name = self.ranks[rank], self.ranks.named(rank)
            self._end(group_end.exited(rank, ended.pid, status.code, ended.crash_cause, name, self._advice()))

    def _advice(self) -> str | None:
        """Advice for a process that has not even loaded: the archive may hide modules from it."""
        return None if self._loaded.done() else first_that_hides(Path(self.spec.ranks[0].load.model_dir))

    def _end(self, end: GroupEnd) -> GroupEnd:
        """The first reason counts. Running jobs fail; jobs that waited behind them go back to the queue."""
        if self._ended.done():
            return self._ended.result()
        self._become(GroupState.ENDED)
        self._watchdog.close()
        self._load_errors.close()
        self.ranks.kill()
        self._ended.set_result(end)
        self._events.group_ended(self)
        self.runner.close(end.error)
        self.handover.close()
        if self._port is not None:
            self._port.close()
        return end

    # -- for the describe API and the log --

    @property
    def ended_by(self) -> GroupEnd:
        """Why it has ended. Raises InvalidStateError before that."""
        return self._ended.result()

    @property
    def labels(self) -> dict[str, object]:
        return {"model": self.spec.load.model_name, "version": self.spec.load.model_version, "rank": 0}

    @property
    def number(self) -> int:
        """Its replica's."""
        return self.spec.worker

    @property
    def phase(self) -> str:
        """Phase of the ranks while the model is being loaded."""
        return self.ranks.phase if self.state in (GroupState.STARTING, GroupState.LOADING) else ""

    @property
    def pid(self) -> int | None:
        """Pid of rank 0; None while it has no process."""
        return self.ranks.leader.status.pid

    @property
    def memory(self) -> int:
        """Resident bytes of all its ranks."""
        return sum(rank.status.memory for rank in self.ranks)

    @property
    def shared_memory(self) -> dict[str, int] | None:
        """Shared memory of a stage: its segments, their bytes, how many are lent, and how many of others' it reads."""
        return None if self._port is None else self._port.describe()

    @property
    def own_memory(self) -> int:
        """Bytes of all its ranks that other processes do not share: another group of the model would take as much."""
        return sum(rank.status.own_memory for rank in self.ranks)
