"""Requests that the handler of tests/services/ts/modes_gate.py holds until the case lets them go."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.server import RunningServer, wait_until


class Gates:
    def __init__(self, server: RunningServer, folder: Path, threads: ThreadPoolExecutor) -> None:
        self.server, self.folder, self.threads = server, folder, threads

    def ask(self, model: str, name: str, **order: Any) -> httpx.Response:
        """Without a gate, unless told otherwise."""
        return self.server.predict(model, {"name": name, "gate": str(self.folder), "free": True, **order})

    def begin(self, model: str, name: str, **order: Any) -> Future[httpx.Response]:
        """Returns when the handler works on it."""
        future = self.threads.submit(self.ask, model, name, **{"free": False, **order})
        wait_until((self.folder / f"begun-{name}").exists, f"{name} has begun", self.server.tail)
        return future

    def queue(self, model: str, name: str, **order: Any) -> Future[httpx.Response]:
        """Returns when it waits."""
        before = self.pending(model)
        future = self.threads.submit(self.ask, model, name, **order)
        wait_until(lambda: self.pending(model) > before, f"{name} waits", self.server.tail)
        return future

    def go(self, *names: str) -> None:
        for name in names:
            (self.folder / f"go-{name}").touch()

    def pending(self, model: str) -> int:
        pending: int = self.server.describe(model)["jobQueueStatus"]["pendingRequests"]
        return pending

    def order(self) -> list[str]:
        """The names, in the order of their calls."""
        return (self.folder / "order").read_text().split()


@contextmanager
def gates_of(server: RunningServer, folder: Path) -> Iterator[Gates]:
    """At the end nothing is held any longer."""
    with ThreadPoolExecutor(16) as threads:
        try:
            yield Gates(server, folder, threads)
        finally:
            (folder / "go").touch()
