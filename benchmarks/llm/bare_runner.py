"""The engine's model runner in a process of its own, without engine and server: the upper limit of their speed."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.llm import static
from benchmarks.llm.arrivals import Arrival
from benchmarks.llm.orders import Answer, serve
from msx_core.config import parse_model_config
from msx_core.mindspore import graph_cache
from msx_llm.adapters.catalog import packed_adapters, shape_of
from msx_llm.limits import limits_of
from msx_llm.models.registry import read_config
from msx_llm.runner import load_runner
from msx_llm.step_runner import AdaptingRunner
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore.parallel import init_parallel

MEMORY = 8 << 30
"""Bytes; unused, because the yaml sets the length of the context."""


class Bare:
    """Greedy."""

    def __init__(self, folder: Path, yaml: dict[str, Any]) -> None:
        config = read_config(folder)
        options = parse_model_config(yaml)[0]
        limits = limits_of(options, config.context, config.token_bytes(), MEMORY)
        parallel = init_parallel(Context(ModelInfo("llama", model_dir=folder, config=yaml)))
        self._adapters = packed_adapters(folder, options.adapters)
        room = shape_of(self._adapters, config, options.adapters)
        self._runner = load_runner(folder, config, lambda weights: limits, parallel, adapters=room)
        self._chunk = limits.prefill_buckets[-1]
        self._tokens = np.zeros(limits.slots, np.int64)

    def warm_up(self) -> Answer:
        """Seconds, and the names of the graphs."""
        graphs: list[str] = []
        began = time.perf_counter()
        self._runner.warm_up(graphs.append)
        seconds = time.perf_counter() - began
        graph_cache.loaded()
        return {"seconds": seconds, "graphs": graphs}

    def resident(self) -> Answer:
        """Bytes of memory that the process has."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {"bytes": pages * resource.getpagesize()}

    def adapt(self) -> Answer:
        """The texts have the adapters of the folder, in turn."""
        assert isinstance(self._runner, AdaptingRunner)
        places = list(enumerate(self._adapters, 1))
        for slot in range(self._runner.slots):
            self._runner.adapt(slot, *places[slot % len(places)])
        return {}

    def loop(self, slots: int, start: int, steps: int) -> Answer:
        """The instants of that many greedy steps, from position `start` on."""
        instants = []
        for position in range(start, start + steps):
            self.step([position] * slots)
            instants.append(time.perf_counter())
        return {"instants": instants}

    def operators(self, steps: int, slots: int = 0, position: int = 0, prompt: int = 0) -> Answer:
        """Seconds of steps of so many texts, or of a prompt, and calls and seconds of each operator in one of them."""
        from benchmarks.llm.operator_times import operator_times, step_seconds

        def step() -> None:
            self.step([position] * slots) if slots else self.prefill(0, range(prompt))

        step()  # compiles its graph
        return {"seconds": step_seconds(step, steps), "operators": operator_times(step, steps)}

    def text(self, prompt: list[int], tokens: int) -> Answer:
        self.prefill(0, prompt)
        said = [int(self._tokens[0])]
        for position in range(len(prompt), len(prompt) + tokens - 1):
            self.step([position])
            said.append(int(self._tokens[0]))
        return {"runner": said}

    def static(self, arrivals: list[dict[str, Any]], slots: int) -> Answer:
        traces = static.run(self, [Arrival(**one) for one in arrivals], slots)
        return {"traces": [(trace.asked, trace.instants) for trace in traces]}

    def prefill(self, slot: int, prompt: Sequence[int]) -> None:
        for start in range(0, len(prompt), self._chunk):
            logits = self._runner.prefill(slot, start, prompt[start : start + self._chunk])
        self._tokens[slot] = logits.argmax()

    def step(self, positions: Sequence[int]) -> None:
        count = len(positions)
        logits = self._runner.decode(range(count), self._tokens[:count].tolist(), positions)
        self._tokens[:count] = logits.argmax(-1)


if __name__ == "__main__":
    bare = Bare(Path(sys.argv[1]), json.loads(sys.argv[2]))
    orders = (bare.warm_up, bare.resident, bare.adapt, bare.loop, bare.operators, bare.text, bare.static)
    serve({order.__name__: order for order in orders})
