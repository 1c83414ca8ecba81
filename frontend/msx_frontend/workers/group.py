"""A worker group: all the ranks of one replica, which start, serve, fail and end as one."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import msgspec

from msx_backend.protocol import (
    CallDone,
    Cancel,
    Chunk,
    Drain,
    Dropped,
    Failed,
    Load,
    Loaded,
    LoadFailed,
    MetricSample,
    Pong,
    ToFrontend,
    encode_frame,
)
from msx_frontend.errors import HandlerFailed, ServiceError
from msx_frontend.job import Job
from msx_frontend.workers import endings, heartbeat
from msx_frontend.workers.crew import Crew, Member, RankSpec
from msx_frontend.workers.endings import GroupEnd
from msx_frontend.workers.heartbeat import Heartbeat
from msx_frontend.workers.in_flight import InFlight
from msx_frontend.workers.lockstep import Lockstep
from msx_frontend.workers.stragglers import Stragglers
from msx_sdk.generation import Capabilities
from msx_sdk.kserve import Signature


class GroupState(Enum):
    STARTING = "STARTING"
    LOADING = "LOADING"
    READY = "READY"
    DRAINING = "UNLOADING"
    """TorchServe's word for it."""
    ENDED = "ENDED"


@dataclass(frozen=True)
class GroupSpec:
    """All that a generation of a group is started from. Times in seconds."""

    ranks: tuple[RankSpec, ...]
    startup_timeout: float
    response_timeout: float
    max_concurrent: int
    """Requests at once on an async handler."""
    rank_skew_timeout: float = 10.0
    """How long one rank may still run after the others have ended a call, or let them wait in a collective."""

    @property
    def load(self) -> Load:
        return self.ranks[0].load


class GroupEvents(Protocol):
    """What the owner of a group is told, on the loop's thread."""

    def group_has_room(self, group: WorkerGroup) -> None: ...

    def group_replied(self, group: WorkerGroup) -> None:
        """Its first good reply."""

    def group_ended(self, group: WorkerGroup) -> None: ...

    def batch_finished(self, size: int, seconds: float) -> None: ...

    def jobs_returned(self, jobs: list[Job]) -> None:
        """Jobs whose batch had not begun when the group ended."""

    def samples_arrived(self, samples: list[MetricSample]) -> None: ...


class WorkerGroup:
    def __init__(self, spec: GroupSpec, events: GroupEvents) -> None:
        self.spec, self._events = spec, events
        self.state = GroupState.STARTING
        self.start_time = time.time()
        self.load_seconds = 0.0
        self.is_async = False
        self.capabilities = Capabilities()
        self.signature = Signature()
        self._replied = False
        self._crew = Crew(spec.ranks, self)
        self._lockstep = Lockstep(len(spec.ranks), spec.rank_skew_timeout, self._diverged)
        self._withheld: list[Failed] = []
        self._in_flight = InFlight()
        self._loop = asyncio.get_running_loop()
        self._loaded: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[GroupEnd] = self._loop.create_future()
        self._heartbeat = Heartbeat(len(spec.ranks), self._crew.ping, self._judge)
        self._stragglers = Stragglers(spec.rank_skew_timeout)
        self._progressed = time.monotonic()

    # -- life --

    async def start(self) -> GroupEnd | None:
        """Until the model is loaded; the GroupEnd if it was not."""
        try:
            await self._crew.spawn()
        except OSError as error:
            return self._end(endings.not_started(error))
        if self.state is not GroupState.STARTING:
            self._crew.kill()  # it ended meanwhile: what was started after that is not left
            return self._ended.result()
        self.state = GroupState.LOADING
        self._crew.load()
        first: set[asyncio.Future[Any]] = {self._loaded, self._ended}
        await asyncio.wait(first, timeout=self.spec.startup_timeout, return_when=asyncio.FIRST_COMPLETED)
        if not self._loaded.done() and not self._ended.done():
            self._end(endings.load_too_slow(self.spec.startup_timeout, self._crew.slowest))
        return self._ended.result() if self._ended.done() else None

    async def wait_ended(self) -> GroupEnd:
        """Until every process of the group is gone and its folder removed."""
        end = await asyncio.shield(self._ended)
        await self._crew.gone()
        return end

    async def drain(self, limit: float) -> None:
        """No new work; what runs may finish for `limit` seconds, then the rest fails. Returns when it is gone."""
        if self.state is GroupState.READY:
            self.state = GroupState.DRAINING
            self._crew.send(encode_frame(Drain()))
            await asyncio.wait({self._ended}, timeout=limit)
        self._end(endings.asked_to_stop())
        await self.wait_ended()

    # -- work --

    @property
    def busy(self) -> int:
        """Jobs in flight."""
        return len(self._in_flight)

    @property
    def awaited(self) -> bool:
        """Somebody waits for one of its jobs: false also when all their clients have left."""
        return self._in_flight.awaited

    @property
    def idle(self) -> bool:
        return self.state is GroupState.READY and not self._in_flight

    def room(self, *, ahead: bool = False) -> int:
        """Jobs that it could take now; with `ahead`, one more batch behind the running one counts as room."""
        if self.state is not GroupState.READY:
            return 0
        if self.is_async:
            return self.spec.max_concurrent - len(self._in_flight)
        return self.spec.load.batch_size if self._in_flight.batches < (2 if ahead else 1) else 0

    def predict(self, jobs: list[Job]) -> None:
        """Send a batch; to an async handler each job is one."""
        now = time.monotonic()
        if not self._in_flight:
            self._progressed = now
        for batch in [[job] for job in jobs] if self.is_async else [jobs]:
            for job in batch:
                job.group = self
            self._crew.send(*self._in_flight.add(batch, now, at_once=self.is_async))

    def cancel(self, job: Job) -> None:
        if job.number in self._in_flight:
            self._crew.send_control(encode_frame(Cancel([job.number])))

    def cancel_all(self, error: ServiceError) -> None:
        """Nobody waits any longer: every job fails at once, and the worker is told."""
        for job in self._in_flight.jobs():
            job.cancel(error)

    # -- what the ranks say --

    def received(self, rank: int, message: ToFrontend, body: bytes) -> None:
        self._progressed = time.monotonic()
        self._heartbeat.heard(rank, self._progressed)
        if isinstance(message, Chunk):
            self._chunk(message, body)
        elif isinstance(message, Failed):
            self._failed(message)
        elif isinstance(message, Dropped):
            self._finish(message.number)
        elif isinstance(message, CallDone):
            self._reported(rank, message)
        elif isinstance(message, Loaded):
            self.is_async, self.load_seconds = message.is_async, max(message.seconds, self.load_seconds)
            if rank == 0:
                self.capabilities = msgspec.convert(message.capabilities, Capabilities)
                self.signature = msgspec.convert(message.signature, Signature)
            self._ready_when_all_are()
        elif isinstance(message, LoadFailed):
            self._end(endings.load_failed(message, self._named(rank)))

    def _ready_when_all_are(self) -> None:
        """The ranks that rank 0 leads tell that they are loaded before they warm up with it."""
        if self.state is GroupState.LOADING and self._crew.all_loaded and not self._lockstep.busy:
            self.state = GroupState.READY
            self._lockstep.warming_up = False
            self._heartbeat.start()
            self._loaded.set_result(None)

    def _reported(self, rank: int, report: CallDone) -> None:
        self._lockstep.reported(rank, report)
        self._ready_when_all_are()
        if not self._lockstep.in_doubt:
            withheld, self._withheld = self._withheld, []
            for message in withheld:
                self._failed(message)

    def _chunk(self, message: Chunk, body: bytes) -> None:
        job = self._in_flight.job(message.number)
        if job is None:
            return
        if not job.done:
            if message.status:
                job.status, job.first_chunk = message.status, self._progressed
                job.sink.start(message.status, message.phrase, message.headers)
            if body:
                job.sink.chunk(body)
        if message.last:
            job.finish(job.status)
            self._good_reply()
            self._finish(message.number)

    def _failed(self, message: Failed) -> None:
        """If it is not the handler that failed but one rank of several, the client hears that rank's story."""
        if self._lockstep.in_doubt:
            return self._withheld.append(message)
        job = self._in_flight.job(message.number)
        if job is not None:
            job.fail(HandlerFailed(message.status, message.message))
            self._finish(message.number)
        return None

    def _good_reply(self) -> None:
        if not self._replied:
            self._replied = True
            self._events.group_replied(self)

    def _finish(self, number: int) -> None:
        if number not in self._in_flight:
            return
        batch = self._in_flight.finish(number, self._progressed)
        if batch is not None:
            self._events.batch_finished(batch.size, self._progressed - batch.began)
        if batch is not None or self.is_async:
            self._events.group_has_room(self)

    # -- heartbeat and time limits --

    def ponged(self, rank: int, pong: Pong) -> None:
        now = time.monotonic()
        self._heartbeat.heard(rank, now)
        self._stragglers.counted(rank, pong.collectives, now)
        if pong.samples and rank == 0:  # the others record the same calls
            self._events.samples_arrived(pong.samples)

    def _judge(self, now: float) -> None:
        """While a call runs, `responseTimeout` is the limit, not a missed heartbeat.

        MindSpore may compile for longer than that without letting any other thread run.
        """
        limit, silent = self.spec.response_timeout, self._heartbeat.silent(now)
        together = not self._lockstep.busy  # no rank has ended a call in which others still are
        if self._in_flight and now - self._progressed > limit:
            self._end(endings.no_response(limit, self._named(silent), self._stragglers.words()))
        elif self._in_flight and together and (straggler := self._stragglers.overdue(now)):
            self._diverged(straggler)
        elif self.idle and together and silent is not None:
            self._end(endings.no_heartbeat(heartbeat.MISSED_HEARTBEAT, self._named(silent)))

    # -- end --

    def exited(self, rank: int, code: int) -> None:
        if self.state is GroupState.DRAINING and code == 0:
            if self._crew.all_exited:
                self._end(endings.asked_to_stop())
        else:
            process = self._crew.members[rank].process
            self._end(endings.exited(rank, process.pid, code, process.last_words))

    def _diverged(self, sentence: str) -> None:
        self._end(endings.diverged(sentence))

    def _end(self, end: GroupEnd) -> GroupEnd:
        """The first reason counts. What was running fails; what waited behind it goes back to the queue."""
        if self._ended.done():
            return self._ended.result()
        self.state = GroupState.ENDED
        self._heartbeat.stop()
        self._lockstep.close()
        self._crew.kill()
        self._ended.set_result(end)
        self._events.group_ended(self)
        begun, waiting = self._in_flight.let_go()
        for job in begun:
            job.fail(end.error)
        returned = [job for job in waiting if not job.done]
        for job in returned:
            job.group = None
        if returned:
            self._events.jobs_returned(returned)
        return end

    # -- for the describe API and the log --

    @property
    def labels(self) -> dict[str, object]:
        return {"model": self.spec.load.model_name, "version": self.spec.load.model_version, "rank": 0}

    @property
    def phase(self) -> str:
        """What it does while the model is loaded."""
        return self._crew.phase if self.state in (GroupState.STARTING, GroupState.LOADING) else ""

    @property
    def pid(self) -> int:
        """Of rank 0."""
        return self._crew.members[0].process.pid

    @property
    def memory(self) -> int:
        """Resident bytes of all its ranks."""
        return sum(member.process.memory for member in self._crew.members)

    @property
    def ranks(self) -> list[Member]:
        return self._crew.members

    def _named(self, rank: int | None) -> str:
        """Which rank it was, where there are several."""
        return "" if rank is None or len(self.spec.ranks) == 1 else f"rank {rank}"
