"""The steps that were started and are not finished, on the engine's thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from msx_core.leading import Leading
from msx_llm.limits import EngineLimits
from msx_llm.sampling.choice import TokenChoice
from msx_llm.step import Array, Decode, Mixed, Prefill, Prefills, Step, TokenChunk, encode
from msx_llm.step_runner import StepRunner, prepare

Finish = Callable[[], "Array | None"]
Lead = Callable[[bytes], Leading]


class StartingRunner(StepRunner, Protocol):
    """A runner that can start several steps, and finishes them in the order of their starts."""

    overlaps: bool
    """It computes a step that was started while the host does other work; otherwise the start itself computes it."""

    def start_prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Finish: ...

    def start_decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Finish: ...


class EngineRunner(StartingRunner, Protocol):
    """The runner of a decoder that the engine has loaded."""

    limits: EngineLimits
    prefill_size: int
    """The most tokens of one prefill."""


@runtime_checkable
class StatefulRunner(Protocol):
    """One whose texts may have states, of which the cache has the last one alone."""

    limits: EngineLimits
    keeps_states: bool


@runtime_checkable
class StartingMixer(Protocol):
    """One that may also start steps of any number of tokens for each of several slots."""

    def start_mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Finish: ...


@runtime_checkable
class StartingGrouper(Protocol):
    """One that may also start steps of several prompts."""

    def start_prefills(self, chunks: Sequence[TokenChunk]) -> Finish: ...


class StartedStep(NamedTuple):
    finish: Finish
    leading: Leading
    answer: asyncio.Future[Array | None]


class StartedSteps:
    """Starts each step at once. The loop waits for the oldest one, and for nothing else meanwhile, when what is ready
    on it has run: until then, lanes start their next steps, and requests and cancels that have come are heard.

    With pipeline stages, a step is on its way through the other stages when this rank's part is done. `lead` is the
    context's, in a group of several ranks.
    """

    def __init__(self, runner: StartingRunner, lead: Lead | None = None) -> None:
        self._runner, self._lead = runner, lead
        self._mixer = runner if isinstance(runner, StartingMixer) else None
        self._started: deque[StartedStep] = deque()
        self._waits = False

    def run(self, step: Step) -> asyncio.Future[Array | None]:
        """Starts the step now; returns a future of its logits, or of what it raised."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Array | None] = loop.create_future()
        leading = Leading()
        try:
            if self._lead is not None:
                leading = self._lead(encode(step))
            with leading.part():
                finish = self._begin(step)
        except Exception as error:  # whatever it is, the engine goes on
            leading.end(error)
            answer.set_exception(error)
            return answer
        self._started.append(StartedStep(finish, leading, answer))
        if not self._waits:
            self._waits = True
            loop.call_soon(self._finish)
        return answer

    def _begin(self, step: Step) -> Finish:
        if isinstance(step, Decode):
            return self._runner.start_decode(step.slots, step.tokens, step.positions)
        if isinstance(step, Prefill):
            return self._runner.start_prefill(step.slot, step.start, step.tokens, step.all_logits)
        if isinstance(step, Prefills) and isinstance(self._runner, StartingGrouper):
            return self._runner.start_prefills(step.chunks)
        if isinstance(step, Mixed) and self._mixer is not None:
            for preparation in step.before:
                prepare(self._runner, preparation)
            return self._mixer.start_mixed(step.chunks, step.choices)
        prepare(self._runner, step)
        return lambda: None

    def _finish(self) -> None:
        """Waits for the oldest step. The lane that it belongs to runs before the next one is waited for."""
        finish, leading, answer = self._started.popleft()
        try:
            with leading.part():
                logits = finish()
        except Exception as error:
            leading.end(error)
            _reject(answer, error)
        else:
            leading.end()
            _resolve(answer, logits)
        self._waits = bool(self._started)
        if self._waits:
            asyncio.get_running_loop().call_soon(self._finish)


def _resolve(answer: asyncio.Future[Array | None], logits: Array | None) -> None:
    if not answer.done():
        answer.set_result(logits)


def _reject(answer: asyncio.Future[Array | None], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
