"""`ts.handler_utils.micro_batching`: a batch in parts, whose steps run side by side."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from msx_sdk import HandlerLoadError

HANDLER_METHODS = ("preprocess", "inference", "postprocess")


def profiled() -> bool:
    """Whether calls run under torch's profiler."""
    return os.environ.get("ENABLE_TORCH_PROFILER", "").lower() == "true"


class MicroBatching:
    """Takes the place of a handler's `handle`: `self.handle = MicroBatching(self, micro_batch_size=4)`.

    `parallelism` says how many threads each of preprocess, inference and postprocess has: 1 where it says nothing.
    """

    def __init__(
        self, parent_handler: Any, micro_batch_size: int = 1, parallelism: Mapping[str, int] | None = None
    ) -> None:
        self.handler, self.micro_batch_size = parent_handler, micro_batch_size
        self._local = threading.local()
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._parallelism = dict.fromkeys(HANDLER_METHODS, 1)
        self.parallelism = parallelism or {}

    @property
    def parallelism(self) -> Mapping[str, int]:
        return self._parallelism

    @parallelism.setter
    def parallelism(self, wanted: Mapping[str, int]) -> None:
        """Steps that are not named keep their number of threads. Raises HandlerLoadError for other steps, or for fewer
        than one thread."""
        for step, threads in wanted.items():
            if step not in HANDLER_METHODS or not isinstance(threads, int) or threads < 1:
                steps = ", ".join(HANDLER_METHODS)
                raise HandlerLoadError(
                    f"micro_batching.parallelism: {step}: {threads!r} is not a number of threads of {steps}"
                )
        self._parallelism = {**self._parallelism, **wanted}
        self.shutdown()

    def shutdown(self) -> None:
        """End the threads; the next call starts others."""
        for pool in self._pools.values():
            pool.shutdown()
        self._pools = {}

    def get_micro_batch_idx(self) -> int | None:
        """The index of the part on which the calling step works; None outside of a step."""
        return getattr(self._local, "idx", None)

    def handle(self, data: list[Any]) -> list[Any]:
        """The answers of all parts, in the order of the data. What a step raises is raised here."""
        size = max(int(self.micro_batch_size), 1)
        parts = [data[start : start + size] for start in range(0, len(data), size)]
        ends = [self._start(idx, part) for idx, part in enumerate(parts)]
        return [answer for end in ends for answer in end.result()]

    def __call__(self, data: list[Any], context: Any) -> list[Any]:
        started = time.perf_counter()
        self.handler.context = context
        answers = self._answer(data)
        context.metrics.add_time("HandlerTime", (time.perf_counter() - started) * 1000)
        return answers

    def _answer(self, data: list[Any]) -> list[Any]:
        """Answers a batch in parts, and other requests (describe, explain) as `BaseHandler` does."""
        answers: list[Any]
        if self._is("describe"):
            answers = [self.handler.describe_handle()]
        elif self._is("explain"):
            answers = self.handler.explain_handle(self.handler.preprocess(data), data)
        elif profiled():
            answers = self.handler._infer_with_profiler(data)[0]
        else:
            answers = self.handle(data)
        return answers

    def _is(self, question: str) -> bool:
        asked: Callable[[], bool] = getattr(self.handler, f"_is_{question}", bool)
        return asked()

    def _start(self, idx: int, part: Any) -> Future[Any]:
        """Each step has threads of its own, so that one that waits for the step before it does not hold up the
        others."""
        before: Future[Any] = Future()
        before.set_result(part)
        for step in HANDLER_METHODS:
            before = self._pool(step).submit(copy_context().run, self._step, idx, getattr(self.handler, step), before)
        return before

    def _step(self, idx: int, call: Callable[[Any], Any], before: Future[Any]) -> Any:
        data = before.result()
        self._local.idx = idx
        return call(data)

    def _pool(self, step: str) -> ThreadPoolExecutor:
        if step not in self._pools:
            self._pools[step] = ThreadPoolExecutor(self._parallelism[step], thread_name_prefix=step)
        return self._pools[step]
