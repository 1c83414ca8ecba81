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
"""`calls`: begin, end and size of each since the last question; `bare`: seconds of each call of the loop."""


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

    def figures(self, call: Callable[[], Any]) -> Figures:
        """Forget the calls so far, and make those of a loop."""
        calls, self._calls = self._calls, []
        return {"calls": calls, "bare": self._loop(call)}

    def _loop(self, call: Callable[[], Any]) -> list[float]:
        seconds: list[float] = []
        ends = time.perf_counter() + self._bare
        while len(seconds) < FEWEST or time.perf_counter() < ends:
            began = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - began)
        return seconds
