"""Text generation: requests in, deltas out."""

import asyncio
import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import msgspec

from msx_core.config import SpeculativeOptions
from msx_core.failures import summary
from msx_core.statuses import PREDICTION_FAILED
from msx_llm.adapters.catalog import UNKNOWN, AdapterCatalog
from msx_llm.adapters.places import AdapterPlaces
from msx_llm.blocks import BlockPool
from msx_llm.choosing import DeviceChoices
from msx_llm.draft_model import Drafter, DraftModel
from msx_llm.engine_state import EngineState
from msx_llm.handle import RequestHandle
from msx_llm.job import GenerationJob, GenerationJobFactory
from msx_llm.lane import Lane, LaneOptions, Run
from msx_llm.later_graphs import Keep, LaterGraphs
from msx_llm.limits import EngineLimits
from msx_llm.loops import call_on
from msx_llm.sampling import Constraints
from msx_llm.scheduler import Scheduler
from msx_llm.sleeper import ASLEEP, Sleeper
from msx_llm.slots import SlotPool
from msx_llm.speculator import Speculator
from msx_llm.stats import EngineStats
from msx_llm.step_runner import LaterCompilingRunner
from msx_llm.text import Tokenizer
from msx_sdk.errors import PredictionError
from msx_sdk.generation import GenerateRequest

OVERLOADED, TIMED_OUT = 429, 504

log = logging.getLogger("msx.llm")


class Engine:
    """The engine of one model. Everything happens on the thread of the event loop on which `start` was called; requests
    are submitted from any thread, their handles belong to that thread.

    `lanes`: steps in flight, one for each stage of a pipeline. `native`: in prompts with more tokens than this, keys
    depend on the prompt's length; None if they never do. `mixes`: the runner executes `Mixed` steps. `chooses`: and
    takes `choices` with them. `groups`: it executes `Prefills`. `follows`, for one lane without `speculative`: a step
    with `choices` is followed by the next one, if there is one, before it is awaited. `overlaps`: a step that was
    started is computed while this thread goes on. `speculative`: the runner takes the same slot several times in a
    step, at the positions after each other; `draft_states`: for so many tokens. `draft_model`: for its method `draft`.
    `later`: the runner has graphs that are compiled while it serves; `keep` is around each of these compilations.
    `adapters`: those that requests may choose, so many of them at once.
    `on_published` is called after the deltas of a step. `on_failure` is called once, when the runner stops working.
    """

    def __init__(
        self,
        vocab_size: int,
        tokenizer: Tokenizer,
        limits: EngineLimits,
        run: Run,
        *,
        constraints: Constraints | None = None,
        lanes: int = 1,
        pool: BlockPool | None = None,
        native: int | None = None,
        mixes: bool = False,
        groups: bool = False,
        chooses: bool = False,
        follows: bool = False,
        overlaps: bool = True,
        speculative: SpeculativeOptions | None = None,
        draft_states: int | None = None,
        adapters: AdapterCatalog | None = None,
        adapter_places: int = 0,
        draft_model: DraftModel | None = None,
        later: LaterCompilingRunner | None = None,
        keep: Keep = nullcontext,
        on_published: Callable[[], None] = lambda: None,
        on_failure: Callable[[str], None] | None = None,
    ) -> None:
        self._limits, self._on_failure = limits, on_failure
        choices = DeviceChoices() if chooses else None
        self._lane = LaneOptions(run, self._give_up, choices, follows, overlaps, on_published)
        self._lanes = lanes
        self._speculator = None
        if speculative is not None:
            self._speculator = Speculator(speculative, limits.slot_buckets, draft_states)
        self._pool = pool or SlotPool(limits.slots, limits.batch_total, limits.block)
        self._adapters = adapters or AdapterCatalog({})
        self._places = AdapterPlaces(adapter_places) if adapter_places else None
        drafter = None
        if draft_model is not None and self._speculator is not None:
            drafter = Drafter(draft_model, self._speculator, limits.slots)
        scheduler = Scheduler(self._pool, limits, lanes, native, mixes, groups, self._speculator, self._places)
        self._state = EngineState(scheduler, drafter)
        self._sleeper = Sleeper(run, self._pool, draft_model)
        self._maker = GenerationJobFactory(tokenizer, limits, vocab_size, constraints)
        whole = replace(limits, max_input=limits.context - 1)
        self._inner_maker = GenerationJobFactory(tokenizer, whole, vocab_size, constraints)
        self._prompt_tokens = 0
        self._refusal: str | None = None
        self._numbers = itertools.count()
        self._later: LaterGraphs | None = None
        if later is not None:
            self._later = LaterGraphs(later, self._is_busy, lambda: self._state.steps, keep)
        self._compiling: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts the lanes on the running loop."""
        self._loop = asyncio.get_running_loop()
        lanes = [Lane(self._state, self._lane) for _ in range(self._lanes)]
        self._tasks = [asyncio.create_task(lane.work()) for lane in lanes]
        for task in self._tasks:
            task.add_done_callback(self._lane_ended)
        if self._later is not None:
            self._compiling = asyncio.create_task(self._later.work())

    async def close(self) -> None:
        """Ends the requests in progress with an error; returns when the last step has ended."""
        self._stop("The model is shutting down.")
        if self._compiling is not None:
            self._compiling.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def sleep(self, level: int) -> int:
        """Ends the requests in progress with an error and releases memory, or has it back: see `SleepRequest`. -> The
        level now. If that fails, the runner counts as broken. Raises what it raises."""
        self._check_works()
        if level:
            self._end_all(ASLEEP)
        try:
            await self._sleeper.change(level)
        except Exception as error:
            self._give_up(error)
            raise
        return self._sleeper.level

    def submit(self, request: GenerateRequest, *, deadline: float | None = None, inner: bool = False) -> RequestHandle:
        """Take a request, from a thread with a running loop, on which the handle is read. `deadline` on the clock of
        `time.monotonic`: then the request fails with 504. `inner`: it is a part of another request, and has a part of
        its text as the prompt, so that neither `maxConcurrent` nor `maxInputTokens` counts.

        Raises InvalidInput, naming the parameter; PredictionError 404 for an unknown adapter, 429 when there are
        `maxConcurrent` requests in progress, and 503 while it sleeps, after `close` or after the runner has stopped
        working. A constraint that `constraints` does not know yet is compiled here.
        """
        self._check_room(inner)
        adapter = self._adapters.chosen(request)
        if adapter is not None and self._places is None:
            raise PredictionError(UNKNOWN, f"The model has no room for adapter {adapter.name}: see adapters.loadable.")
        number = next(self._numbers)
        job = (self._inner_maker if inner else self._maker).make(request, number, partial(self._cancel, number))
        self._state.jobs[number] = job
        if deadline is not None:
            loop = asyncio.get_running_loop()
            job.handle.timer = loop.call_later(deadline - time.monotonic(), self._expire, job)
        for sequence in job.sequences:
            sequence.adapter = adapter
            if self._speculator is not None and request.params.speculative:
                sequence.drafts = self._speculator.drafts_of_text()
        call_on(self._loop, self._enter, job)
        return job.handle

    @property
    def failure(self) -> str | None:
        """Why new requests are refused; None while they are accepted."""
        return self._refusal

    def stats(self) -> EngineStats:
        return EngineStats(
            running=len(self._state.scheduler.running),
            waiting=len(self._state.scheduler.waiting),
            preempted=self._state.scheduler.preempted,
            requests=len(self._state.jobs),
            blocks_used=self._pool.used,
            blocks_total=self._pool.total,
            prefix_placed=self._pool.prefixes.placed,
            prefix_hit=self._pool.prefixes.hit,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._state.completion_tokens,
            drafted=0 if self._speculator is None else self._speculator.drafted,
            accepted=0 if self._speculator is None else self._speculator.accepted,
            adapters=self._texts_by_adapter(),
            adapters_loaded=0 if self._places is None else self._places.loaded,
            adapter_places=0 if self._places is None else self._places.count,
            steps=self._state.steps,
            seconds=msgspec.structs.replace(self._state.seconds),
        )

    def _texts_by_adapter(self) -> dict[str, tuple[int, int]]:
        scheduler = self._state.scheduler
        running, waiting = (
            Counter(text.adapter.name for text in texts if text.adapter is not None)
            for texts in (scheduler.running, scheduler.waiting)
        )
        return {name: (running[name], waiting[name]) for name in {*self._adapters.names, *running, *waiting}}

    def _enter(self, job: GenerationJob) -> None:
        if job.number not in self._state.jobs:  # it was cancelled meanwhile
            return
        if self._refused is not None:  # the model fell asleep or stopped meanwhile
            self._state.end(job, PredictionError(PREDICTION_FAILED, self._refused))
            return
        self._prompt_tokens += job.sequences[0].prompt
        for sequence in job.sequences:
            self._state.scheduler.add(sequence)
        self._state.wake()

    def _check_room(self, inner: bool) -> None:
        if self._refused is not None:
            raise PredictionError(PREDICTION_FAILED, self._refused)
        count = len(self._state.jobs)
        if not inner and count >= self._limits.max_concurrent:
            raise PredictionError(
                OVERLOADED,
                f"The model is overloaded: {count} requests are in progress, as many as maxConcurrent allows; "
                f"try again later.",
            )

    @property
    def _refused(self) -> str | None:
        """Why a request cannot enter now."""
        return self._refusal or (ASLEEP if self._sleeper.level else None)

    def _is_busy(self) -> bool:
        return bool(self._state.jobs or self._sleeper.level)

    def _check_works(self) -> None:
        if self._refusal is not None:
            raise PredictionError(PREDICTION_FAILED, self._refusal)

    def _cancel(self, number: int) -> None:
        call_on(self._loop, self._end, number)

    def _end(self, number: int) -> None:
        if job := self._state.jobs.get(number):
            self._state.end(job)

    def _expire(self, job: GenerationJob) -> None:
        """End a late request on the reader's loop, which hears of it even while a step takes long."""
        made = sum(sequence.made for sequence in job.sequences)
        job.handle.end(PredictionError(TIMED_OUT, f"The request's time was up (tokens made: {made})."))
        self._cancel(job.number)

    def _stop(self, reason: str) -> None:
        self._state.over = True
        self._refusal = reason
        self._end_all(reason)
        self._state.wake()

    def _end_all(self, reason: str) -> None:
        for job in list(self._state.jobs.values()):
            self._state.end(job, PredictionError(PREDICTION_FAILED, reason))

    def _give_up(self, error: BaseException) -> None:
        """The runner has stopped working: all requests fail."""
        if self._state.over:
            return
        log.critical("the model has stopped working", exc_info=error)
        sentence = f"Prediction failed: the model has stopped working: {summary(error)}"
        self._stop(sentence)
        if self._on_failure is not None:
            self._on_failure(sentence)

    def _lane_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._give_up(error)
