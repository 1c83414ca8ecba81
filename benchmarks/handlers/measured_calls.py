"""Calls of a device: how many requests each had, and how long the same call takes in a loop, with nothing else around.

Nothing here is MSX's, so that any server can run the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

BARE = 1.0
"""Seconds of the loop, at least."""
FEWEST = 20
"""Calls of the loop, however long one takes."""

FIGURES = b"figures"
"""The body of a request that is answered with the figures, where a server has no other way to ask for them."""

Figures = dict[str, Any]
"""`calls`: begin, end and size of each since the last question. Seconds of each call of a loop: `bare` with a full
batch, `alone` with one request."""


class MeasuredCalls:
    def __init__(self, bare: float = BARE) -> None:
        """`bare`: seconds of the loop, at least."""
        self._bare = bare
        self._calls: list[tuple[float, float, int]] = []

    def run(self, size: int, call: Callable[[], Any]) -> Any:
        """Make a call for so many requests, and note it."""
        began = time.monotonic()
        result = call()
        self._calls.append((began, time.monotonic(), size))
        return result

    def figures(self, bare: Callable[[], Any], alone: Callable[[], Any] | None = None) -> Figures:
        """Forget the calls so far, and make those of a loop. `alone`: the call for one request, if that is another."""
        calls, self._calls = self._calls, []
        seconds = self._loop(bare)
        return {"calls": calls, "bare": seconds, "alone": self._loop(alone) if alone else seconds}

    def _loop(self, call: Callable[[], Any]) -> list[float]:
        seconds: list[float] = []
        ends = time.perf_counter() + self._bare
        while len(seconds) < FEWEST or time.perf_counter() < ends:
            began = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - began)
        return seconds


class MeasuredNetwork:
    """A network whose calls are noted."""

    def __init__(self, network: Any, bare: float = BARE) -> None:
        """`network` takes one array, or a list of arrays, with a row a request. `bare`: see `MeasuredCalls`."""
        self.network, self._measured = network, MeasuredCalls(bare)
        self._size = 0
        self.batch: Any = None
        """The largest batch that it has seen."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def __call__(self, batch: Any) -> Any:
        size = len(batch[0] if isinstance(batch, list) else batch)
        if size > self._size:
            self._size, self.batch = size, batch
        return self._measured.run(size, lambda: self.network(batch))

    def figures(self, call: Callable[[Any], Any] | None = None) -> Figures:
        """As `MeasuredCalls.figures`, with the largest batch. `call` of a batch, if the loop does more than compute."""
        batch, run = self.batch, call or self.network
        one = [array[:1] for array in batch] if isinstance(batch, list) else batch[:1]
        return self._measured.figures(lambda: run(batch), lambda: run(one))
