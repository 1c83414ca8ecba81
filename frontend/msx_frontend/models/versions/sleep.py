"""Sleep of a model version: its workers have released memory, and keep their processes."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from msx_core.generation import SLEEP, SleepRequest
from msx_core.service_errors import BadRequest, ServiceError, ServiceUnavailable
from msx_frontend.job import Field, Job
from msx_frontend.models.answers import CollectedAnswer
from msx_frontend.workers.batch_runner import BatchRunner

AGAIN = 15.0
"""Seconds after which a refused client may ask again: only an operator knows when the model is awake."""


class Asleep(ServiceUnavailable):
    def __init__(self, name: str) -> None:
        super().__init__(
            f'Model "{name}" is asleep: its workers have released their memory. An operator wakes it by POST /wake_up.',
            wait=AGAIN,
        )


class CannotSleep(BadRequest):
    def __init__(self, name: str) -> None:
        super().__init__(
            f'Model "{name}" cannot sleep: only language models on CPUs (handler text_generation), and those of vLLM '
            "on devices (vllm.enable_sleep_mode), release their memory and keep their processes. Scale it to 0 workers "
            "instead."
        )


class VersionSleep:
    """`level`: see `SleepRequest`; requests are refused unless it is 0, before anything is released."""

    def __init__(self, name: str, groups: Callable[[], Sequence[BatchRunner]]) -> None:
        self._name, self._groups = name, groups
        self.level = 0
        self._late: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Raises Asleep."""
        if self.level:
            raise Asleep(self._name)

    async def fall_asleep(self, level: int, at_rest: Callable[[], Awaitable[None]], end: Callable[[], None]) -> None:
        """`at_rest` waits for requests in progress for a time, after which `end` ends them. A deeper sleep than `level`
        goes on. Raises ServiceError; the worker that failed starts again then, and is put to sleep."""
        self.level = max(level, self.level)
        await at_rest()
        end()
        await self._tell_all(self.level)

    async def wake(self) -> None:
        """Raises ServiceError; the worker that failed starts again then, and is awake."""
        try:
            await self._tell_all(0)
        finally:
            self.level = 0

    def started(self, group: BatchRunner) -> None:
        """A worker that starts meanwhile is put to sleep, too."""
        if self.level:
            task = asyncio.ensure_future(self._tell_late(group))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _tell_late(self, group: BatchRunner) -> None:
        try:
            await _tell(group, self._name, self.level)
        except ServiceError:  # it ends, and its log says why
            return

    async def _tell_all(self, level: int) -> None:
        answers = (_tell(group, self._name, level) for group in self._groups())
        for answer in await asyncio.gather(*answers, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer


async def _tell(group: BatchRunner, name: str, level: int) -> None:
    """It has the level when this returns, which takes up to `responseTimeout`. Raises ServiceError."""
    sink, body = CollectedAnswer(), msgspec.msgpack.encode(SleepRequest(level=level))
    job = Job(f"sleep-{time.monotonic_ns()}", name, None, [Field("body", None, body)], [], sink, kind=SLEEP)
    group.predict([job])
    group.flush()
    await sink.result
