"""Ends the worker when vLLM's engine has died: its processes are not started anew, so that all later requests fail."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator

import psutil

log = logging.getLogger("msx.vllm")

PROCESSES = "VLLM::"
"""Beginning of the names of vLLM's processes."""
EVERY = 0.25
"""Seconds between two looks."""
LAST_WORDS = 0.2
"""Seconds in which replies with the reason are sent; then the worker ends and is restarted."""


class EngineWatch:
    """Watches vLLM's processes, and looks at `is_dead`, from now on, on the running loop, until `stop`.

    vLLM tells that its engine is dead, but only seconds later where one of several processes that compute has died: it
    waits for the others first. So all of them are killed when one has died.
    """

    def __init__(self, is_dead: Callable[[], bool]) -> None:
        self._is_dead, self._loop = is_dead, asyncio.get_running_loop()
        self._processes = dict(_handles())
        for handle, name in self._processes.items():
            self._loop.add_reader(handle, self._end, f"its process {name} has ended")
        self._timer = self._loop.call_later(EVERY, self._look)

    def stop(self) -> None:
        self._timer.cancel()
        for handle in self._processes:
            self._loop.remove_reader(handle)
            os.close(handle)
        self._processes = {}

    def _look(self) -> None:
        if self._is_dead():
            self._end("its engine has ended")
        else:
            self._timer = self._loop.call_later(EVERY, self._look)

    def _end(self, reason: str) -> None:
        for handle in self._processes:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)  # vLLM then tells requests that its engine is dead
        self.stop()
        log.critical("the worker ends and will be restarted because of vLLM: %s; its log says why", reason)
        self._timer = self._loop.call_later(LAST_WORDS, os._exit, 1)


def _handles() -> Iterator[tuple[int, str]]:
    """Descriptors that can be read when a process has ended, with what it is; none where the system has no such."""
    for process in psutil.Process().children(recursive=True):
        try:
            name = process.name()
            if name.startswith(PROCESSES):
                yield os.pidfd_open(process.pid), f"{name} (pid {process.pid})"
        except (AttributeError, OSError, psutil.Error):  # not Linux, a kernel before 5.3, or it has just ended
            continue
