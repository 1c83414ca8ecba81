"""Hands the jobs of a language model to its workers one by one, each to the worker that the router chooses."""

from collections.abc import Callable, Sequence

from msx_core.config import ModelConfig, RoutingOptions
from msx_core.generation import GENERATE, Capabilities
from msx_frontend.job import INFER, PREDICT, STREAM, Job
from msx_frontend.metrics.generation import TextMetrics
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.batched_jobs import let_pass
from msx_frontend.queueing.events import Gate
from msx_frontend.queueing.job_queue import JobQueue
from msx_frontend.queueing.routing.blocks import blocks_of
from msx_frontend.queueing.routing.router import Wanted, WorkerRouter

TEXTS = frozenset({GENERATE, PREDICT, STREAM, INFER})
"""Kinds of jobs that a language model may answer with a text. What the others compute is not kept."""
NOTHING = Wanted(None, ())


class RoutedJobs:
    """Decides where the next job of a queue goes, and never when, or whether it waits."""

    def __init__(self, options: RoutingOptions, metrics: TextMetrics) -> None:
        self._options, self._metrics = options, metrics
        self._router: WorkerRouter[BatchTarget] = WorkerRouter(options.max_imbalance)
        self.forget = self._router.forget

    def hand_out(self, queue: JobQueue, groups: Sequence[BatchTarget], gate: Gate | None) -> None:
        """Until the queue is empty, no group has room, or the gate does not let the next job pass."""
        while queue.ring and (free := [group for group in groups if group.room()]):
            jobs = queue.take(1)
            if gate is not None and not let_pass(gate, queue, jobs):
                break
            self._choose(jobs[0], free).predict(jobs)
        for group in groups:
            group.flush()

    def _choose(self, job: Job, free: list[BatchTarget]) -> BatchTarget:
        is_text = job.kind in TEXTS
        worker, reason = self._router.choose(self._wanted(job) if is_text else NOTHING, free)
        if is_text:
            self._metrics.routed(reason)
        return worker

    def _wanted(self, job: Job) -> Wanted:
        session = job.session() if self._options.sessions else ""
        blocks = blocks_of(job.beginning()) if self._options.prefix else ()
        return Wanted(hash(session) if session else None, blocks)


def routed_jobs(
    config: ModelConfig, offered: Capabilities | None, group: BatchTarget, metrics: Callable[[], TextMetrics]
) -> RoutedJobs | None:
    """None for models without texts or with sequences, which have workers of their own, and for handlers of batches."""
    if offered is None or not offered.generate or not group.is_async or config.stateful:
        return None
    return None if (options := config.routed) is None else RoutedJobs(options, metrics())
