"""The state that an engine shares with its lanes."""

import asyncio
import time

from msx_llm.draft_model import Drafter
from msx_llm.job import GenerationJob
from msx_llm.scheduler import Scheduler
from msx_llm.sequence import TokenSequence
from msx_llm.stats import StepSeconds
from msx_llm.step import Step
from msx_sdk.errors import PredictionError


class EngineState:
    """The requests in progress by their numbers, the scheduler of their steps, and counts for the metrics.

    `over`: the lanes take no more steps.
    """

    def __init__(self, scheduler: Scheduler, drafter: Drafter | None = None) -> None:
        self.scheduler, self.drafter = scheduler, drafter
        self.jobs: dict[int, GenerationJob] = {}
        self.seconds = StepSeconds()
        self.steps = 0
        self.completion_tokens = 0
        self.over = False
        self._last_step_done = 0.0
        self._resting: list[asyncio.Future[None]] = []

    def end(self, job: GenerationJob, error: PredictionError | None = None) -> None:
        """Ends a request. It may be called at any time, and repeatedly; slots and blocks are free at once."""
        if self.jobs.pop(job.number, None) is None:
            return
        job.ended = True
        for sequence in job.sequences:
            self.scheduler.end(sequence)
        job.handle.times.ended = time.monotonic()
        job.handle.end(error)
        self.wake()

    def verified(self, sequence: TokenSequence, drafted: int, accepted: int) -> None:
        """Note how many of a text's draft tokens were accepted."""
        if drafted and (speculator := self.scheduler.speculator) is not None:
            speculator.note(sequence, drafted, accepted)

    def took(self, step: Step, start: float) -> None:
        """A step that was started at `start` is done. Its own time began when the step before it was done."""
        now = time.perf_counter()
        self.seconds.add("model", now - max(start, self._last_step_done))
        self.scheduler.pace.note(step, now - max(start, self._last_step_done))
        if self.scheduler.speculator is not None:
            self.scheduler.speculator.took(step, now - max(start, self._last_step_done))
        self._last_step_done = now

    def wake(self) -> None:
        resting, self._resting = self._resting, []
        for future in resting:
            if not future.done():
                future.set_result(None)

    async def rest(self) -> None:
        """Waits for the next `wake`."""
        future = asyncio.get_running_loop().create_future()
        self._resting.append(future)
        await future
