"""Everything that one worker of vLLM has on the machine, and texts that it streams."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from msx_frontend.workers.shared_files import shared_files
from tests.e2e.server import RunningServer, client_of, wait_until
from tests.processes import is_alive

WORKER, ENGINE, RANK = "worker", "VLLM::EngineCore", "VLLM::Worker"
"""The process of MSX, and those below it."""
CONTEXT = 8192
"""Tokens of a text that is not over before a test has done something to it."""
GONE = 5.0
"""Seconds in which all that a worker had is gone when it has ended."""


class Generation:
    """One start of the only worker of a model that serves."""

    def __init__(self, server: RunningServer, model: str) -> None:
        (self.pid,) = server.worker_pids(model)
        worker = psutil.Process(self.pid)
        self._processes = [worker, *worker.children(recursive=True)]
        self._files = shared_files(self.pid) | {Path(worker.cwd())}

    def pid_of(self, name: str) -> int:
        if name == WORKER:
            return self.pid
        return next(one.pid for one in self._processes if one.name().startswith(name[:15]))

    def left(self) -> list[object]:
        return [one for one in self._processes if is_alive(one)] + [one for one in self._files if one.exists()]

    def wait_gone(self, server: RunningServer, limit: float = GONE) -> None:
        wait_until(lambda: not self.left(), "nothing is left of the worker", lambda: f"{self.left()}", limit)


@contextmanager
def streams(server: RunningServer, number: int, **asked: Any) -> Iterator[list[Iterator[str]]]:
    """The lines of so many long texts, of each of which the first has come."""
    body = {"prompt": "the sea", "max_tokens": CONTEXT - 100, "ignore_eos": True, "stream": True, **asked}
    with ExitStack() as stack, client_of(server.info["inference"]) as client:
        begun = []
        for _ in range(number):
            reply = stack.enter_context(client.stream("POST", "/v1/completions", json=body))
            assert reply.status_code == 200, reply.read()
            begun.append(reply.iter_lines())
            next(begun[-1])
        yield begun


def end_of(lines: Iterator[str]) -> str:
    """The last line of a text that is not empty. The connection of one that failed is cut behind it."""
    last = ""
    with contextlib.suppress(httpx.RemoteProtocolError):
        for line in lines:
            last = line or last
    return last
