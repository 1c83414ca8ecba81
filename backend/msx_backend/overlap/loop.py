"""The loop of a worker that overlaps: three threads, and at most one batch ahead of `inference` and one behind."""

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

from msx_backend.batch_loop import BatchLoop
from msx_backend.control import CallClock
from msx_backend.joined_batches import Frames
from msx_backend.overlap.gathering import Gathering
from msx_backend.overlap.pace import Pace
from msx_backend.overlap.source import BatchSource
from msx_backend.overlap.timed_steps import TimedSteps
from msx_backend.worker_link import WorkerLink
from msx_core.overlap_runner import OverlapRunner, StepBatch
from msx_protocol import Joined

SWITCH_INTERVAL = 10e-6
"""Seconds that a thread may keep the interpreter while another one wants it, instead of Python's 5 ms: the thread that
drives the device needs it between two kernels (docs/internals/decisions.md has what was measured)."""

OnMain = Callable[[], bool | None]
"""Work for the main thread: True where requests are read there again, False where the worker ends."""


class OverlapLoop:
    """Requests are read and preprocessed on the thread `ahead`, and answered on the thread `behind`.

    Where that does not pay (see `Pace`) all is done on the main thread, as in a `BatchLoop`. `inference` always is, and
    so is each call of the whole `handle`.
    """

    def __init__(self, link: WorkerLink, steps: OverlapRunner, batch_size: int = 1) -> None:
        self._jobs, self._replies, self._clock = link.jobs, link.replies, link.clock
        self._pace = Pace()
        self._gathering = Gathering(link.sock, self._pace)
        self._steps = TimedSteps(steps, self._pace, self._gathering.more_wait)
        self._sequential = BatchLoop(link, self._steps, batch_size)
        self._source = BatchSource(link, batch_size)
        self._ahead_clock, self._behind_clock = CallClock(), CallClock()
        self._clock.beside = (self._ahead_clock, self._behind_clock)
        self._ahead, self._behind = threading.Lock(), threading.Lock()
        """Held while a batch is ahead of `inference`, and while one is behind."""
        self._reads: SimpleQueue[bool] = SimpleQueue()
        """True lets the thread `ahead` read, False ends it."""
        self._on_main: SimpleQueue[OnMain] = SimpleQueue()
        self._inferred: SimpleQueue[StepBatch | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._preparing = False

    def serve(self, early: Frames = ()) -> None:
        """Serve until Drain, or until the server is gone. `early` are messages that came together with Load."""
        self._sequential.start()
        going_on = self._sequential.handle(early)
        while going_on:
            going_on = self._overlapped() if self._pace.decide() else self._in_turn()
        self._end_threads()

    # -- the main thread --

    def _in_turn(self) -> bool:
        """Receive once, and answer on this thread."""
        going_on = self._sequential.receive()
        ended, self._steps.ended = self._steps.ended, []
        rate, last = self._pace.comparison.in_turn, len(ended) - 1
        for idx, batch in enumerate(ended):
            self._pace.ended(rate, batch.requests, batch.at, followed=batch.more_wait or idx < last)
        return going_on

    def _overlapped(self) -> bool:
        """Let the other threads work, until the one that reads hands that back."""
        self._start_threads()
        self._pace.comparison.in_turn.pause()
        self._reads.put(True)
        while (going_on := self._on_main.get()()) is None:
            pass
        self._pace.comparison.overlapped.pause()
        with self._behind:  # the last batch is answered
            pass
        while not self._on_main.empty():
            self._on_main.get()()
        return going_on

    def _infer(self, step: StepBatch) -> None:
        self._pace.begin()
        self._ahead.release()
        with self._clock:
            self._steps.infer(step)
        self._behind.acquire()
        self._pace.end()
        self._gathering.device_is_free()
        alone = self._on_main.empty() and not self._preparing
        followed, rate = not alone or self._gathering.more_wait(), self._pace.comparison.overlapped
        self._pace.ended(rate, len(step.requests), time.monotonic(), followed=followed)
        if alone and self._pace.answers_quickly:
            with self._clock:
                self._answer(step, self._recover)
            self._behind.release()
        else:
            self._inferred.put(step)

    def _recover(self, step: StepBatch) -> None:
        with self._clock:
            self._steps.recover(step)
        self._over(step)

    # -- the thread `ahead` --

    def _read_ahead(self) -> None:
        while self._reads.get():
            try:
                self._on_main.put(partial(bool, self._prepare_batches()))
            except BaseException as error:
                self._on_main.put(partial(_raise, error))

    def _prepare_batches(self) -> bool:
        while self._pace.decide() or self._source.holds:
            self._ahead.acquire()
            if not self._prepare_batch():
                self._ahead.release()
                return False
        return True

    def _prepare_batch(self) -> bool:
        # Of its own, so that nothing of a batch is referred to while the next one is waited for.
        taken = self._source.take(self._gathering.more_come)
        if taken is None:
            return False
        self._preparing = True
        self._replies.send(Joined(taken.batches, taken.requests[0].number))
        with self._ahead_clock:
            step = self._steps.prepare(taken.requests)
        self._on_main.put(partial(self._infer, step))
        self._preparing = False
        return True

    # -- the thread `behind` --

    def _answer_behind(self) -> None:
        while (step := self._inferred.get()) is not None:
            try:
                with self._behind_clock:
                    self._answer(step, self._recover_on_main)
            except BaseException as error:
                self._on_main.put(partial(_raise, error))
            del step  # and all that it holds, before the next one is waited for
            self._behind.release()

    def _answer(self, step: StepBatch, recover: Callable[[StepBatch], None]) -> None:
        self._steps.answer(step)
        if step.error is None:
            self._over(step)
        else:
            recover(step)

    def _recover_on_main(self, step: StepBatch) -> None:
        self._on_main.put(partial(self._recover, step))

    def _over(self, step: StepBatch) -> None:
        if step.batch is not None:
            ids = [request.id for request in step.batch.requests]
            self._steps.context.metrics.prediction_time(step.seconds, ids)
        self._replies.drop_unanswered(step.requests)
        self._jobs.release(step.requests)
        self._replies.flush_now()

    def _start_threads(self) -> None:
        if not self._threads:
            sys.setswitchinterval(SWITCH_INTERVAL)
            for name, run in (("ahead", self._read_ahead), ("behind", self._answer_behind)):
                thread = threading.Thread(target=run, name=name, daemon=True)
                thread.start()
                self._threads.append(thread)

    def _end_threads(self) -> None:
        self._reads.put(False)
        self._inferred.put(None)
        for thread in self._threads:
            thread.join()
        self._gathering.close()


def _raise(error: BaseException) -> None:
    raise error
