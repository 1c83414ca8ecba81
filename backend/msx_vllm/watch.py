"""Ends the worker when vLLM's engine has died: its processes are not started anew, so that all later requests fail."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import psutil

log = logging.getLogger("msx.vllm")

PROCESSES = "VLLM::"
"""Beginning of the names of vLLM's processes."""
EVERY = 0.1
"""Seconds between two looks."""
LAST_WORDS = 0.2
"""Seconds in which replies with the reason are sent; then the worker ends and is restarted."""


class WatchedProcess(NamedTuple):
    name: str
    process: psutil.Process

    def has_ended(self) -> bool:
        try:
            return bool(self.process.status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True


class EngineWatch:
    """Looks at vLLM's processes and at `is_dead` from now on, on the running loop, until `stop`.

    vLLM tells that its engine is dead, but only seconds later where one of several processes that compute has died: it
    waits for the others first. So all of them are killed when one has died. The state of a process shows its death at
    once; the kernel tells of it only when its memory is free, which may take a second.
    """

    def __init__(self, is_dead: Callable[[], bool]) -> None:
        self._is_dead, self._loop = is_dead, asyncio.get_running_loop()
        self._processes = list(_processes())
        self._timer = self._loop.call_later(EVERY, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        ended = next((one for one in self._processes if one.has_ended()), None)
        if ended is not None:
            self._end(f"its process {ended.name} (pid {ended.process.pid}) has ended")
        elif self._is_dead():
            self._end("its engine has ended")
        else:
            self._timer = self._loop.call_later(EVERY, self._look)

    def _end(self, reason: str) -> None:
        for _, process in self._processes:
            with contextlib.suppress(psutil.Error):
                process.kill()  # vLLM then tells requests that its engine is dead
        log.critical("the worker ends and will be restarted because of vLLM: %s; its log says why", reason)
        self._timer = self._loop.call_later(LAST_WORDS, os._exit, 1)


def _processes() -> Iterator[WatchedProcess]:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            if (name := process.name()).startswith(PROCESSES):
                yield WatchedProcess(name, process)
