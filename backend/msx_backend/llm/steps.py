"""The thread on which rank 0 runs steps, while the event loop serves clients."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol, runtime_checkable

from msx_backend.llm.sampling.choice import TokenChoice
from msx_backend.llm.step import (
    Array,
    Decode,
    Mixed,
    Prefill,
    Step,
    StepRunner,
    TokenChunk,
    encode,
    execute,
)
from msx_sdk._internal.leading import Leading

PATIENCE = 0.003
"""Seconds that the receiver of logits has to order the next step, before the thread waits for another step's logits."""

Finish = Callable[[], "Array | None"]
Lead = Callable[[bytes], Leading]


class StartingRunner(StepRunner, Protocol):
    """A runner that can start several steps, and finishes them in the order of their starts."""

    def start_prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Finish: ...

    def start_decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Finish: ...


@runtime_checkable
class StartingMixer(Protocol):
    """One that may also start steps of any number of tokens for each of several slots."""

    def start_mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Finish: ...


class QueuedStep(NamedTuple):
    step: Step
    answer: asyncio.Future[Array | None]


class StartedStep(NamedTuple):
    finish: Finish
    leading: Leading
    answer: asyncio.Future[Array | None]


class StepThread:
    """Executes steps in the order in which `run` was called.

    With pipeline stages, a step is on its way through the other stages when this rank's part is done: the next step is
    started before the thread waits for the first one's logits, so that no stage is idle. `lead` is the context's.
    """

    def __init__(self, runner: StartingRunner, lead: Lead) -> None:
        self._runner, self._lead = runner, lead
        self._orders: SimpleQueue[QueuedStep | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, name="model", daemon=True)
        self._thread.start()

    def run(self, step: Step) -> asyncio.Future[Array | None]:
        """Starts the step now; returns a future of its logits, or of what it raised."""
        answer: asyncio.Future[Array | None] = self._loop.create_future()
        self._orders.put(QueuedStep(step, answer))
        return answer

    def close(self) -> None:
        """Returns when all ordered steps are done."""
        self._orders.put(None)
        self._thread.join()

    def _serve(self) -> None:
        started: deque[StartedStep] = deque()
        is_open, answered = True, False
        while is_open or started:
            try:
                order = self._next(bool(started), answered)
            except Empty:
                self._finish(started.popleft())
                answered = True
                continue
            answered = False
            if order is None:
                is_open = False
            else:
                self._start(order, started)

    def _next(self, waiting: bool, answered: bool) -> QueuedStep | None:
        """Raises Empty if no step can be started now, but others are to be waited for."""
        if not waiting:
            return self._orders.get()
        return self._orders.get(timeout=PATIENCE) if answered else self._orders.get_nowait()

    def _start(self, order: QueuedStep, started: deque[StartedStep]) -> None:
        leading = Leading()
        try:
            leading = self._lead(encode(order.step))
            with leading.part():
                finish = self._begin(order.step)
        except Exception as error:  # whatever it is, the thread goes on
            self._fail(leading, error, order.answer)
        else:
            started.append(StartedStep(finish, leading, order.answer))

    def _begin(self, step: Step) -> Finish:
        if isinstance(step, Decode):
            return self._runner.start_decode(step.slots, step.tokens, step.positions)
        if isinstance(step, Prefill):
            return self._runner.start_prefill(step.slot, step.start, step.tokens, step.all_logits)
        if isinstance(step, Mixed) and isinstance(self._runner, StartingMixer):
            return self._runner.start_mixed(step.chunks, step.choices)
        execute(self._runner, step)
        return lambda: None

    def _finish(self, started: StartedStep) -> None:
        try:
            with started.leading.part():
                logits = started.finish()
        except Exception as error:
            self._fail(started.leading, error, started.answer)
        else:
            started.leading.end()
            self._loop.call_soon_threadsafe(_resolve, started.answer, logits)

    def _fail(self, leading: Leading, error: Exception, answer: asyncio.Future[Array | None]) -> None:
        leading.end(error)
        self._loop.call_soon_threadsafe(_reject, answer, error)


def _resolve(answer: asyncio.Future[Array | None], logits: Array | None) -> None:
    if not answer.done():
        answer.set_result(logits)


def _reject(answer: asyncio.Future[Array | None], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
