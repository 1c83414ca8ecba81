"""A lane of the engine: takes a step, has it executed, and makes tokens of its logits; then the next one."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msx_core.failures import is_out_of_memory, summary
from msx_core.statuses import OUT_OF_RESOURCES, PREDICTION_FAILED
from msx_llm.choosing import DeviceChoices
from msx_llm.engine_state import EngineState
from msx_llm.job import GenerationJob
from msx_llm.replies import TextEnd
from msx_llm.sampling import Chosen, choose_all, verify_all
from msx_llm.sequence import TokenSequence
from msx_llm.step import UNREAD, Array, Prefill, Step, answers_with_ids
from msx_llm.step_plan import StepPlan, Written
from msx_sdk.errors import PredictionError

Run = Callable[[Step], Awaitable[Array | None]]
"""Executes a step, and raises what it raises. Steps take effect in the order of the calls. The call itself starts the
step."""

log = logging.getLogger("msx.llm")


class LaneOptions(NamedTuple):
    """Options that all lanes of an engine share: see `Engine`. `give_up` is called with the error after which the
    runner no longer works. `choices`: if the runner takes them."""

    run: Run
    give_up: Callable[[BaseException], None]
    choices: DeviceChoices | None
    follows: bool
    overlaps: bool
    on_published: Callable[[], None]


class PendingToken(NamedTuple):
    """A token that is not in a delta yet."""

    job: GenerationJob
    sequence: TokenSequence
    chosen: Chosen
    end: TextEnd | None


class StartedPlan(NamedTuple):
    """A step that was started at `start`; `written`: if it was foreseen."""

    plan: StepPlan
    answer: Awaitable[Array | None]
    start: float
    written: list[Written] | None = None


class Lane:
    """Deltas are made while the next step runs, if the runner `overlaps`. A text that a stop string ends may therefore
    be in one more step, whose logits are ignored; else they are made before it is planned.

    Where tokens are chosen on the device, the next step is started before they are read: it takes them from there, so
    that the device does not wait for the host between two steps. Then a text that any token ends is in one more step.
    """

    def __init__(self, state: EngineState, options: LaneOptions) -> None:
        self._state = state
        self._seconds = state.seconds
        self._run, self._give_up, self._choices, self._follows, self._overlaps, self._on_published = options
        self._earlier: StartedPlan | None = None
        self._growths: list[PendingToken] = []

    async def work(self) -> None:
        while not self._state.over:
            if self._state.drafter is not None or not self._overlaps:
                self._publish()  # a text that a stop string ends is in no further step
            if self._state.drafter is not None:
                self._state.drafter.prepare(self._state.scheduler.running)
            plan = self._next()
            if plan is not None:
                await self._step(plan)
            elif self._earlier is not None:
                await self._read_earlier()
            elif self._growths:
                self._publish()
            else:
                await self._state.rest()
        await self._read_earlier()
        self._publish()

    def _next(self) -> StepPlan | None:
        with self._seconds.measure("scheduling"):
            plan = self._state.scheduler.next()
            if plan is not None:
                self._begin(plan)
                if self._choices is not None:
                    self._choices.order(plan)
        return plan

    def _begin(self, plan: StepPlan) -> None:
        self._state.steps += 1
        for sequence in plan.sequences:
            if not sequence.made:
                self._state.jobs[sequence.request].begin(sequence, time.monotonic())

    async def _step(self, plan: StepPlan) -> None:
        start = time.perf_counter()
        started = StartedPlan(plan, self._run(plan.step), start)
        self._publish()
        await self._settle_earlier()
        if self._follows and answers_with_ids(plan.step):
            with self._seconds.measure("scheduling"):
                self._earlier = started._replace(written=self._state.scheduler.foresee(plan))
        else:
            self._publish()
            await self._settle(started)

    async def _read_earlier(self) -> None:
        """No other step follows before the last one's tokens are known."""
        self._publish()
        await self._settle_earlier()

    async def _settle_earlier(self) -> None:
        earlier, self._earlier = self._earlier, None
        if earlier is not None:
            await self._settle(earlier)

    async def _settle(self, started: StartedPlan) -> None:
        """Waits for a step, and makes tokens of its logits."""
        plan = started.plan
        try:
            logits = await started.answer
        except Exception as error:  # the model may raise anything
            await self._failed(plan, error)
            return
        self._state.took(plan.step, started.start)
        start = time.perf_counter()
        choices = [] if logits is None else self._sample(plan, logits)
        self._seconds.add("sampling", time.perf_counter() - start)
        with self._seconds.measure("scheduling"):
            if started.written is None:
                self._state.scheduler.done(plan)
            else:
                self._state.scheduler.read(started.written)
            grown = [self._grow(sequence, chosen) for sequence, chosen in choices]
        self._growths += [growth for growth in grown if growth is not None]
        self._state.wake()

    def _sample(self, plan: StepPlan, logits: Array) -> list[tuple[TokenSequence, Chosen]]:
        """Samples while the sequences are in flight, so that they do not change."""
        places = [place for place in plan.wanting if not plan.sequences[place].finished]
        sequences = [plan.sequences[place] for place in places]
        try:
            if isinstance(plan.step, Prefill) and plan.step.all_logits:
                self._score(plan.sequences[0], plan.step.start, logits)
            if not places:
                return []
            if answers_with_ids(plan.step):
                ids = logits[places].tolist()
                return [(it, it.sampler.take(id)) for it, id in zip(sequences, ids, strict=True)]
            if plan.drafts:
                return self._verify(plan, places, logits)
            samplers = [sequence.sampler for sequence in sequences]
            last = logits.reshape(-1, logits.shape[-1])[-len(plan.sequences) :]
            rows = last if len(places) == len(last) else last[places]
            choices = choose_all(samplers, rows)
        except Exception as error:  # which of them was it? They may have been changed already, so none can go on
            self._fail(plan.sequences, error, "sampling")
            return []
        return list(zip(sequences, choices, strict=True))

    def _verify(self, plan: StepPlan, places: list[int], logits: Array) -> list[tuple[TokenSequence, Chosen]]:
        """One token of each text, and one more for each drafted token that was right."""
        sequences, drafts = [plan.sequences[place] for place in places], [plan.drafts[place] for place in places]
        rows = [logits[slice(*plan.rows[place])] for place in places]
        samplers = [sequence.sampler for sequence in sequences]
        texts = verify_all(samplers, rows, drafts)
        for sequence, draft, choices in zip(sequences, drafts, texts, strict=True):
            self._state.verified(sequence, len(draft), len(choices) - 1)
        return [(sequence, chosen) for sequence, choices in zip(sequences, texts, strict=True) for chosen in choices]

    def _score(self, sequence: TokenSequence, start: int, logits: Array) -> None:
        if job := self._state.jobs.get(sequence.request):
            job.score(sequence, start, logits)

    def _grow(self, sequence: TokenSequence, chosen: Chosen) -> PendingToken | None:
        job = self._state.jobs.get(sequence.request)
        if job is None or sequence.finished:  # cancelled meanwhile, or a neighbour of the same request has failed
            return None
        if chosen.failure is not None:
            self._state.end(job, chosen.failure)
            return None
        if sequence.tokens[-1] == UNREAD:
            sequence.tokens[-1] = chosen.token
        else:
            sequence.computed = len(sequence.tokens)  # behind the first token, these are drafted ones that were right
            sequence.tokens.append(chosen.token)
        end = job.end_of(sequence, chosen)
        if end is not None:
            self._state.scheduler.end(sequence)
        return PendingToken(job, sequence, chosen, end)

    def _publish(self) -> None:
        growths, self._growths = self._growths, []
        if not growths:
            return
        with self._seconds.measure("messaging"):
            now = time.monotonic()
            for growth in growths:
                self._tell(growth, now)
            self._on_published()

    def _tell(self, growth: PendingToken, now: float) -> None:
        job, sequence, chosen, end = growth
        if job.ended:
            return
        if job.handle.times.first is None:
            job.handle.times.first = now
        if end is None and (shared := job.replies.shared(chosen.token)) is not None:
            self._state.completion_tokens += 1
            job.handle.put(*shared)
            return
        if not job.replies.is_open(sequence.index):  # a stop string was before this token
            return
        try:
            deltas, end = job.replies.grow(sequence.index, chosen, end)
        except Exception as error:  # an error in one text must not end the others
            self._state.end(job, prediction_failed(error, "detokenization"))
            return
        self._state.completion_tokens += 1
        for delta in deltas:
            job.handle.put(delta)
        if end is not None:
            self._state.scheduler.end(sequence)
        if job.replies.over:
            self._state.end(job)

    async def _failed(self, plan: StepPlan, error: Exception) -> None:
        """Ends the requests of the step with an error; all requests, if the runner does not work any more."""
        alive = [sequence for sequence in plan.sequences if not sequence.finished]
        trial = self._state.scheduler.failed(plan)
        self._fail(alive, error, plan.name)
        try:
            for step in trial:
                await self._run(step)
        except Exception as again:  # the same
            self._give_up(again)
        self._state.wake()

    def _fail(self, sequences: list[TokenSequence], error: Exception, what: str) -> None:
        log.error("%s failed", what, exc_info=error)
        for job in [self._state.jobs.get(number) for number in {sequence.request for sequence in sequences}]:
            if job is not None:
                self._state.end(job, prediction_failed(error, what))


def prediction_failed(error: Exception, what: str) -> PredictionError:
    if isinstance(error, PredictionError):
        return PredictionError(error.status, error.message)
    if is_out_of_memory(error):
        return PredictionError(OUT_OF_RESOURCES, f"Out of resources in {what}: {summary(error)}")
    return PredictionError(PREDICTION_FAILED, f"Prediction failed in {what}: {summary(error)}")
