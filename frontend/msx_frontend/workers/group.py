"""A worker group: all the ranks of one replica, which start, serve, fail and end as one."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import msgspec

from msx_frontend.errors import ServiceError
from msx_frontend.job import Job
from msx_frontend.workers import endings, heartbeat
from msx_frontend.workers.crew import Crew, Member, RankSpec
from msx_frontend.workers.endings import GroupEnd
from msx_frontend.workers.exchange import Exchange
from msx_frontend.workers.heartbeat import Heartbeat
from msx_frontend.workers.lockstep import Lockstep
from msx_frontend.workers.memory_watch import MemoryWatch
from msx_frontend.workers.stragglers import Stragglers
from msx_protocol import (
    Answers,
    CallDone,
    Chunk,
    Drain,
    Dropped,
    Failed,
    Joined,
    Load,
    Loaded,
    LoadFailed,
    MetricForm,
    MetricSample,
    Pong,
    ToFrontend,
    encode_frame,
)
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
    slots: int = 1
    """Requests at once on a continuous handler."""
    rank_skew_timeout: float = 10.0
    """How long one rank may still run after the others have ended a call, or let them wait in a collective."""

    max_memory: int | None = None
    """Bytes that one rank may take."""

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

    def forms_arrived(self, forms: list[MetricForm]) -> None:
        """Of metrics whose samples may follow."""

    def samples_arrived(self, group: WorkerGroup, samples: list[MetricSample]) -> None: ...


class WorkerGroup:
    def __init__(self, spec: GroupSpec, events: GroupEvents) -> None:
        self.spec, self._events = spec, events
        self.state = GroupState.STARTING
        self.start_time = time.time()
        self.load_seconds = 0.0
        self.capabilities = Capabilities()
        self.signature = Signature()
        self._drained = endings.asked_to_stop()
        """How it ends when it is drained."""
        self._crew = Crew(spec.ranks, self)
        self._lockstep = Lockstep(len(spec.ranks), spec.rank_skew_timeout, self._diverged)
        self._withheld: list[Failed] = []
        self._exchange = Exchange(self, self._crew, events)
        self._loop = asyncio.get_running_loop()
        self._loaded: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[GroupEnd] = self._loop.create_future()
        self._heartbeat = Heartbeat(len(spec.ranks), self._crew.ping, self._judge)
        self._stragglers = Stragglers(spec.rank_skew_timeout)
        self._memory_watch = MemoryWatch(spec.max_memory, self._crew.pids, self._too_much_memory)

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
        self._memory_watch.start()
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

    async def drain(self, limit: float, end: GroupEnd | None = None) -> None:
        """No new work; what runs may finish for `limit` seconds, then the rest fails. Returns when it is gone.

        `end` says why, where it was not told to stop.
        """
        self._drained = end or self._drained
        if self.state is GroupState.READY:
            self.state = GroupState.DRAINING
            self._exchange.flush()
            self._crew.send(encode_frame(Drain()))
            await asyncio.wait({self._ended}, timeout=limit)
        self._end(self._drained)
        await self.wait_ended()

    # -- work --

    @property
    def busy(self) -> int:
        """Jobs in flight."""
        return len(self._exchange.in_flight)

    @property
    def awaited(self) -> bool:
        """Somebody waits for one of its jobs: false also when all their clients have left."""
        return self._exchange.in_flight.awaited

    @property
    def idle(self) -> bool:
        return self.state is GroupState.READY and not self._exchange.in_flight

    def room(self, *, ahead: int = 0) -> int:
        """Jobs that it could take now; so many batches `ahead` of time may stand behind the running one."""
        return self._exchange.room(ahead) if self.state is GroupState.READY else 0

    @property
    def room_to_join(self) -> int:
        """Jobs that could still go with its next batch, while one runs: the worker takes what is there by then."""
        return self._exchange.room_to_join if self.state is GroupState.READY else 0

    @property
    def is_async(self) -> bool:
        """It takes requests one by one, at any time: an async handler, or a continuous one."""
        return self._exchange.slots is not None

    @property
    def continuous(self) -> bool:
        """The handler is called again and again, each time with the requests that are there (`continuousBatching`)."""
        return self._exchange.continuous

    def predict(self, jobs: list[Job], *, joins: bool = False) -> None:
        """They leave at the end of this turn of the loop, or with `flush`. Others that `joins` may run with them."""
        self._exchange.predict(jobs, joins=joins)

    def flush(self) -> None:
        self._exchange.flush()

    def holds(self, job: Job) -> bool:
        """The worker has not answered the last of it yet."""
        return job.group is self and job.number in self._exchange.in_flight

    def cancel(self, job: Job) -> None:
        self._exchange.cancel(job)

    def cancel_all(self, error: ServiceError) -> None:
        """Nobody waits any longer: every job fails at once, and the worker is told."""
        self._exchange.cancel_all(error)

    # -- what the ranks say --

    def received(self, rank: int, message: ToFrontend, body: bytes) -> None:
        self._exchange.progressed = now = time.monotonic()
        self._heartbeat.heard(rank, now)
        if isinstance(message, Answers):
            self._exchange.answered(message, body)
        elif isinstance(message, Chunk):
            self._exchange.chunk(message, body)
        elif isinstance(message, Dropped):
            self._exchange.over(message)
        elif isinstance(message, Failed):
            self._failed(message)
        elif isinstance(message, Joined):
            self._exchange.joined(message)
        elif isinstance(message, CallDone):
            self._reported(rank, message)
        elif isinstance(message, Loaded):
            self.load_seconds = max(message.seconds, self.load_seconds)
            if rank == 0:
                self._exchange.agreed(message)
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

    def _failed(self, message: Failed) -> None:
        """If it is not the handler that failed but one rank of several, the client hears that rank's story."""
        if self._lockstep.in_doubt:
            self._withheld.append(message)
        else:
            self._exchange.over(message)

    # -- heartbeat and time limits --

    def ponged(self, rank: int, pong: Pong) -> None:
        now = time.monotonic()
        self._heartbeat.heard(rank, now)
        self._stragglers.counted(rank, pong.collectives, now)
        if pong.forms and rank == 0:
            self._events.forms_arrived(pong.forms)
        if pong.samples and rank == 0:  # the others record the same calls
            self._events.samples_arrived(self, pong.samples)

    def printed(self, rank: int, sample: MetricSample) -> None:
        if rank == 0:
            self._events.samples_arrived(self, [sample])

    def _judge(self, now: float) -> None:
        """While a call runs, `responseTimeout` is the limit, not a missed heartbeat.

        MindSpore may compile for longer than that without letting any other thread run.
        """
        limit, silent = self.spec.response_timeout, self._heartbeat.silent(now)
        running = bool(self._exchange.in_flight)
        together = not self._lockstep.busy  # no rank has ended a call in which others still are
        if running and now - self._exchange.progressed > limit:
            self._end(endings.no_response(limit, self._named(silent), self._stragglers.words()))
        elif running and together and (straggler := self._stragglers.overdue(now)):
            self._diverged(straggler)
        elif self.idle and together and silent is not None:
            self._end(endings.no_heartbeat(heartbeat.MISSED_HEARTBEAT, self._named(silent)))

    # -- end --

    def exited(self, rank: int, code: int) -> None:
        if self.state is GroupState.DRAINING and code == 0:
            if self._crew.all_exited:
                self._end(self._drained)
        else:
            process = self._crew.members[rank].process
            self._end(endings.exited(rank, process.pid, code, process.last_words))

    def _too_much_memory(self, rank: int, taken: int) -> None:
        pid, limit = self._crew.members[rank].process.pid, self.spec.max_memory or 0
        self._end(endings.too_much_memory(rank, pid, taken, limit))

    def _diverged(self, sentence: str) -> None:
        self._end(endings.diverged(sentence))

    def _end(self, end: GroupEnd) -> GroupEnd:
        """The first reason counts. What was running fails; what waited behind it goes back to the queue."""
        if self._ended.done():
            return self._ended.result()
        self.state = GroupState.ENDED
        self._heartbeat.stop()
        self._memory_watch.stop()
        self._lockstep.close()
        self._crew.kill()
        self._ended.set_result(end)
        self._events.group_ended(self)
        self._exchange.let_go(end.error)
        return end

    # -- for the describe API and the log --

    @property
    def labels(self) -> dict[str, object]:
        return {"model": self.spec.load.model_name, "version": self.spec.load.model_version, "rank": 0}

    @property
    def number(self) -> int:
        """Its replica's."""
        return self.spec.ranks[0].worker

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
    def own_memory(self) -> int:
        """Bytes of all its ranks that nobody shares: what another group of the model would take, too."""
        return sum(member.process.own_memory for member in self._crew.members)

    @property
    def ranks(self) -> list[Member]:
        return self._crew.members

    def _named(self, rank: int | None) -> str:
        """Which rank it was, where there are several."""
        return "" if rank is None or len(self.spec.ranks) == 1 else f"rank {rank}"
