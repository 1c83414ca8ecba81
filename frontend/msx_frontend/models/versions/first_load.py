"""Requests that wait for the first load of a model: what its handler offers must be known before they can be jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from msx_core.service_errors import DeadlineExceeded, Overloaded, ServiceError


class FirstLoad:
    """Requests that wait for the first load: `places` at most, each for `seconds` at most."""

    def __init__(self, name: str, places: int, seconds: float) -> None:
        self._name, self._places, self._seconds = name, places, seconds
        self._waiting: dict[LoadWait, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, go: Callable[[], None], fail: Callable[[ServiceError], None]) -> LoadWait:
        """`go` is called when the handler is known, or `fail` when it will not be. Raises Overloaded."""
        if len(self._waiting) >= self._places:
            raise Overloaded(
                f'Model "{self._name}" is loading, and {self._places} requests wait for it already: jobQueueSize is '
                f"{self._places}."
            )
        wait = LoadWait(go, fail, self._waiting)
        wait.timer = asyncio.get_running_loop().call_later(self._seconds, partial(wait.fail, self._too_late()))
        return wait

    def loaded(self) -> None:
        for wait in list(self._waiting):
            wait.leave()
            wait.go()

    def failed(self, error: ServiceError) -> None:
        for wait in list(self._waiting):
            wait.fail(error)

    def _too_late(self) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"The request waited for {self._seconds:g} s, its responseTimeout, for model {self._name} to load; raise "
            "responseTimeout, or keep a worker by minWorkers."
        )


class LoadWait:
    """Wait of one request for the first load."""

    def __init__(
        self, go: Callable[[], None], fail: Callable[[ServiceError], None], waiting: dict[LoadWait, None]
    ) -> None:
        self.go, self._fail, self._waiting = go, fail, waiting
        self.timer: asyncio.TimerHandle | None = None
        waiting[self] = None

    def leave(self) -> None:
        """It waits no longer, or its client has left. Idempotent."""
        self._waiting.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()

    def fail(self, error: ServiceError) -> None:
        if self in self._waiting:
            self.leave()
            self._fail(error)
