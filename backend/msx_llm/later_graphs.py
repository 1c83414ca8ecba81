"""Compiles the graphs of a model that became ready with a few, while it serves."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from msx_llm.step_runner import LaterCompilingRunner

log = logging.getLogger("msx.llm")

IDLE = 0.5
"""Seconds without a request before a graph is compiled."""
MOST_WAIT = 60.0
"""Seconds after which a graph is compiled between two steps, where there is no such time."""

Keep = Callable[[], AbstractContextManager[None]]
"""Makes the context in which a graph that is kept on disk is compiled."""


class LaterGraphs:
    """A task on the engine's loop, so that it never compiles while a step runs: MindSpore can not do both.

    `busy`: whether there are requests, or the model sleeps. `steps`: how many there were.
    """

    def __init__(
        self, runner: LaterCompilingRunner, busy: Callable[[], bool], steps: Callable[[], int], keep: Keep
    ) -> None:
        self._runner, self._busy, self._steps, self._keep = runner, busy, steps, keep

    async def work(self) -> None:
        start = time.monotonic()
        while self._runner.uncompiled:
            await self._pause()
            try:
                with self._keep():
                    name = self._runner.compile_next()
            except Exception:  # steps go on with the larger graphs that are there
                log.exception("a graph could not be compiled; steps that it was for run with larger ones")
                return
            log.info("compiled %s, %d graphs are left", name, self._runner.uncompiled)
        log.info("all graphs were compiled %.0f s after the model was ready", time.monotonic() - start)

    async def _pause(self) -> None:
        end = time.monotonic() + MOST_WAIT
        while time.monotonic() < end:
            steps = self._steps()
            await asyncio.sleep(IDLE)
            if not self._busy() and self._steps() == steps:
                return
