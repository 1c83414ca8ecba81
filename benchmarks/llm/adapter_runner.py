"""Two runners of one checkpoint in a process of their own, one with adapters: they take steps in turn."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.llm.bare_runner import Bare
from benchmarks.llm.orders import Answer, serve


class Pair:
    def __init__(self, with_: Bare, without: Bare) -> None:
        self._both = with_, without

    def warm_up(self) -> Answer:
        for one in self._both:
            one.warm_up()
        self._both[0].adapt()
        return {}

    def steps(self, slots: int, start: int, steps: int) -> Answer:
        """Seconds of each step, with adapters and without."""
        seconds: tuple[list[float], list[float]] = [], []
        for number in range(steps):
            for place in (0, 1) if number % 2 else (1, 0):
                began = time.perf_counter()
                self._both[place].step([start + number] * slots)
                seconds[place].append(time.perf_counter() - began)
        return {"with": seconds[0], "without": seconds[1]}


if __name__ == "__main__":
    yaml = json.loads(sys.argv[3])
    pair = Pair(*(Bare(Path(folder), yaml) for folder in sys.argv[1:3]))
    serve({"warm_up": pair.warm_up, "steps": pair.steps})
