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
    answers_with_ids,
    encode,
    prepare,
)
from msx_sdk._internal.leading import Leading

PATIENCE = 0.003
"""Seconds that the receiver of logits has to order the next step, before the thread waits for another step's logits."""
LONGEST = 1.0
"""Seconds after which the tokens of a step are read even if nobody has said what follows."""

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


class NoneFollows(NamedTuple):
    """Nothing is to be started before the tokens of the last step are read."""


class StartedStep(NamedTuple):
    finish: Finish
    leading: Leading
    answer: asyncio.Future[Array | None]
    followed: bool
    """The next order comes before its tokens are read."""


class StepThread:
    """Executes steps in the order in which `run` was called.

    With pipeline stages, a step is on its way through the other stages when this rank's part is done: the next step is
    started before the thread waits for the first one's logits, so that no stage is idle. `lead` is the context's.

    `follows`: the next step is also started before the tokens of a step with `choices` are read, for the runner takes
    them from where they are; `none_follows` says that there is not one yet.
    """

    def __init__(self, runner: StartingRunner, lead: Lead, follows: bool = False) -> None:
        self._runner, self._lead, self._follows = runner, lead, follows
        self._orders: SimpleQueue[QueuedStep | NoneFollows | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, name="model", daemon=True)
        self._thread.start()

    def run(self, step: Step) -> asyncio.Future[Array | None]:
        """Starts the step now; returns a future of its logits, or of what it raised."""
        answer: asyncio.Future[Array | None] = self._loop.create_future()
        self._orders.put(QueuedStep(step, answer))
        return answer

    def none_follows(self) -> None:
        """The tokens of the last step must be known before the next one."""
        self._orders.put(NoneFollows())

    def close(self) -> None:
        """Returns when all ordered steps are done."""
        self._orders.put(None)
        self._thread.join()

    def _serve(self) -> None:
        started: deque[StartedStep] = deque()
        is_open, answered = True, False
        while is_open or started:
            try:
                order = self._next(started, answered)
            except Empty:
                order = NoneFollows()
            answered = isinstance(order, NoneFollows)
            if isinstance(order, QueuedStep):
                self._start(order, started)
            elif order is None:
                is_open = False
            elif started:
                self._finish(started.popleft())

    def _next(self, started: deque[StartedStep], answered: bool) -> QueuedStep | NoneFollows | None:
        """Raises Empty if no step can be started now, but others are to be waited for."""
        if not started:
            return self._orders.get()
        if len(started) == 1 and started[0].followed:
            return self._orders.get(timeout=LONGEST)
        patient = answered and not self._follows  # who is followed has ordered the next step already
        return self._orders.get(timeout=PATIENCE) if patient else self._orders.get_nowait()

    def _start(self, order: QueuedStep, started: deque[StartedStep]) -> None:
        leading = Leading()
        try:
            leading = self._lead(encode(order.step))
            with leading.part():
                finish = self._begin(order.step)
        except Exception as error:  # whatever it is, the thread goes on
            self._fail(leading, error, order.answer)
        else:
            followed = self._follows and answers_with_ids(order.step)
            started.append(StartedStep(finish, leading, order.answer, followed))

    def _begin(self, step: Step) -> Finish:
        if isinstance(step, Decode):
            return self._runner.start_decode(step.slots, step.tokens, step.positions)
        if isinstance(step, Prefill):
            return self._runner.start_prefill(step.slot, step.start, step.tokens, step.all_logits)
        if isinstance(step, Mixed) and isinstance(self._runner, StartingMixer):
            for preparation in step.before:
                prepare(self._runner, preparation)
            return self._runner.start_mixed(step.chunks, step.choices)
        prepare(self._runner, step)
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
