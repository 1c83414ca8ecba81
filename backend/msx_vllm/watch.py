"""Ends the worker when vLLM's engine has died: its processes are not started anew, so that all later requests fail."""

import asyncio
import logging
import os
from collections.abc import Callable

log = logging.getLogger("msx.vllm")

EVERY = 0.25
"""Seconds between two looks."""
LAST_WORDS = 0.25
"""Seconds in which replies with the reason are sent; then the worker ends and is restarted."""


class EngineWatch:
    """Looks at `is_dead` from now on, on the running loop, until `stop`."""

    def __init__(self, is_dead: Callable[[], bool]) -> None:
        self._is_dead, self._loop = is_dead, asyncio.get_running_loop()
        self._look()

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        if not self._is_dead():
            self._timer = self._loop.call_later(EVERY, self._look)
            return
        log.critical("the worker ends and will be restarted: vLLM's engine has ended; its log says why")
        self._timer = self._loop.call_later(LAST_WORDS, os._exit, 1)
