"""Workers in simulated time, behind the server's own queue and runners: how much of the time their devices compute."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from msx_core.config import ModelConfig
from msx_frontend import job as jobs
from msx_frontend.queueing import batched_jobs
from msx_frontend.queueing.batched_jobs import BatchedJobs
from msx_frontend.queueing.batching import make_policy
from msx_frontend.queueing.job_queue import JobQueue
from msx_frontend.workers import batch_runner
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.in_flight import Finished
from msx_frontend.workers.launcher import GroupSpec, RankSpec
from msx_protocol import CompleteReplies, FrameReader, Joined, Loaded, Predict, ToWorker
from tests.backend.harness import load_message
from tests.frontend.jobs import make_job


class Steps(NamedTuple):
    """Seconds of a batch's preprocess, inference and postprocess, and of a message's way."""

    before: float
    device: float
    behind: float
    way: float = 0.0003


class Clock:
    def __init__(self) -> None:
        self.now = 1.0
        self._order = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def monotonic(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, (self.now + seconds, self._order, call))

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, call = heapq.heappop(self._events)
            call()


class Worker:
    """Overlaps as a worker does: at most one batch ahead, one behind; one that is not full begins late."""

    def __init__(self, clock: Clock, steps: Steps, batch_size: int, *, overlaps: bool, say: Callable[[Any], None]):
        self._clock, self._steps, self._batch_size = clock, steps, batch_size
        self._overlaps, self._say = overlaps, say
        self._frames: FrameReader[ToWorker] = FrameReader(ToWorker)
        self._waiting = deque[tuple[list[int], bool]]()
        self._begun: list[int] | None = None
        self._ahead: list[int] | None = None
        self._infers: list[int] | None = None
        self._done: list[int] | None = None
        self._last: list[int] | None = None
        self._free_at = 0.0
        self.busy = 0.0
        """Seconds that its device has computed."""
        self.sizes: list[int] = []

    def receive(self, data: bytes) -> None:
        space = self._frames.space()
        assert len(data) <= len(space)
        space[: len(data)] = data
        for message, _ in self._frames.received(len(data)):
            assert isinstance(message, Predict)
            numbers, size = [head.number for head in message.requests], message.size or len(message.requests)
            self._waiting += [(numbers[at : at + size], message.joins) for at in range(0, len(numbers), size)]
        self._step()

    def _step(self) -> None:
        if self._done is not None and self._last is None:
            self._last, self._done = self._done, None
            self._clock.later(self._steps.behind, self._answer)
        if self._ahead is not None and self._infers is self._done is None:
            self._infers, self._ahead = self._ahead, None
            self._free_at = self._clock.now + self._steps.device
            self._clock.later(self._steps.device, self._inferred)
        idle = self._infers is self._done is self._last is None
        if self._waiting and self._begun is self._ahead is None and (self._overlaps or idle):
            self._begin()

    def _begin(self) -> None:
        size = sum(len(numbers) for numbers, joins in self._waiting if joins)
        start = self._free_at - 1.2 * self._steps.before
        if self._waiting[0][1] and size < self._batch_size and self._clock.now < start - 1e-9 and self._overlaps:
            self._clock.later(start - self._clock.now, self._step)
            return
        numbers, joins = self._waiting.popleft()
        count, numbers = 1, numbers[:]
        while joins and self._waiting and self._waiting[0][1]:
            if len(numbers) + len(self._waiting[0][0]) > self._batch_size:
                break
            numbers += self._waiting.popleft()[0]
            count += 1
        if self._overlaps or count > 1:
            self._say(Joined(count, numbers[0]))
        self._begun = numbers
        self.sizes.append(len(numbers))
        self._clock.later(self._steps.before, self._preprocessed)

    def _preprocessed(self) -> None:
        self._ahead, self._begun = self._begun, None
        self._step()

    def _inferred(self) -> None:
        self._done, self._infers = self._infers, None
        self.busy += self._steps.device
        self._step()

    def _answer(self) -> None:
        assert self._last is not None
        self._say(CompleteReplies(self._last, [0] * len(self._last), 200, "", []))
        self._last = None
        self._step()


class Bench:
    """So many clients send one request after the other to the workers of one model."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, steps: Steps, batch_size: int, *, workers: int = 1, overlaps: bool = True
    ) -> None:
        self.clock, self._steps = Clock(), steps
        for module in (jobs, batched_jobs, batch_runner):
            monkeypatch.setattr(module, "time", self.clock)
        config = ModelConfig(batch_size=batch_size, max_batch_delay=0)
        self.policy = make_policy(config.batching_policy, batch_size, 0.0)
        self._batched, self._queue = BatchedJobs(config, self.policy, None), JobQueue(10_000)
        self.runners: list[BatchRunner] = []
        self.workers: list[Worker] = []
        for _ in range(workers):
            self._start(steps, batch_size, overlaps=overlaps)

    def _start(self, steps: Steps, batch_size: int, *, overlaps: bool) -> None:
        number = len(self.workers)

        def write(*parts: bytes) -> None:
            data = b"".join(parts)
            self.clock.later(steps.way, lambda: self.workers[number].receive(data))

        def say(message: Any) -> None:
            self.clock.later(steps.way, lambda: self._heard(self.runners[number], message))

        load = load_message(Path(), "h.py")
        load.batch_size = batch_size
        leader: Any = SimpleNamespace(data=SimpleNamespace(write=write), control=SimpleNamespace(write=write))
        spec = GroupSpec((RankSpec(load, {}),), startup_timeout=1, response_timeout=1, max_concurrent=1)
        runner = BatchRunner(spec, leader, self, lambda: None)
        runner.configure(Loaded(is_async=False, seconds=0.0, overlap=overlaps))
        runner.ready = True
        self.runners.append(runner)
        self.workers.append(Worker(self.clock, steps, batch_size, overlaps=overlaps, say=say))

    def _heard(self, runner: BatchRunner, message: Any) -> None:
        runner.progressed = self.clock.now
        if isinstance(message, Joined):
            runner.joined(message)
        else:
            runner.answered(message, b"")
            for _ in message.numbers:
                self.clock.later(self._steps.way, self._ask)

    def _ask(self) -> None:
        self._queue.put(make_job())
        self.policy.arrived(self.clock.now)
        self._pump()

    def _pump(self) -> None:
        if self._queue.ring and (delay := self._batched.hand_out(self._queue, self.runners)):
            self.clock.later(delay, self._pump)

    def group_has_room(self, group: BatchRunner) -> None:
        self._pump()

    def batches_finished(self, batches: Sequence[Finished]) -> None:
        for size, seconds, _ in batches:
            self.policy.finished(size, seconds)

    def jobs_returned(self, returned: list[jobs.Job]) -> None:
        raise AssertionError("no worker ends")

    def guests_arrived(self, group: BatchRunner, guests: Sequence[jobs.Job]) -> None:
        raise AssertionError("no frontend was before this one")

    def utilisation(self, clients: int, seconds: float) -> float:
        """Share of the time, but for the first fifth, in which the devices compute."""
        for number in range(clients):
            self.clock.later(number * 1e-5, self._ask)
        self.clock.run(1.0 + seconds / 5)
        before, start = sum(worker.busy for worker in self.workers), self.clock.now
        for worker in self.workers:
            worker.sizes.clear()
        self.clock.run(1.0 + seconds)
        computed = sum(worker.busy for worker in self.workers) - before
        return computed / (self.clock.now - start) / len(self.workers)
