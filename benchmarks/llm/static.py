"""Static batching: all waiting requests run together, up to the number of slots, until the longest has ended.

Kinder to it than most of its kind are: tokens are seen as soon as they are made, by a client in the same process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from benchmarks.llm.arrivals import Arrival
from benchmarks.llm.trace import Trace


class Batch(Protocol):
    """Runner of a batch."""

    def prefill(self, slot: int, prompt: Sequence[int]) -> None:
        """Ends with the first token."""

    def step(self, positions: Sequence[int]) -> None:
        """A token for each slot."""


def run(
    batch: Batch,
    some: Sequence[Arrival],
    slots: int,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Trace]:
    """The requests at their times, batch after batch."""
    began, waiting = clock(), list(some)
    traces: list[Trace] = []
    while waiting:
        sleep(max(began + waiting[0].at - clock(), 0.0))
        ready = [one for one in waiting if began + one.at <= clock()][:slots] or waiting[:1]
        waiting = waiting[len(ready) :]
        traces += [
            Trace(began + one.at, instants) for one, instants in zip(ready, _instants(batch, ready, clock), strict=True)
        ]
    return traces


def _instants(batch: Batch, some: Sequence[Arrival], clock: Callable[[], float]) -> list[list[float]]:
    """The times of the tokens that each request asked for; further tokens are left out."""
    instants: list[list[float]] = []
    for slot, one in enumerate(some):
        batch.prefill(slot, one.prompt)
        instants.append([clock()])
    for number in range(max(one.output for one in some) - 1):
        batch.step([len(one.prompt) + number for one in some])
        now = clock()
        for one, seen in zip(some, instants, strict=True):
            if len(seen) < one.output:
                seen.append(now)
    return instants


def useful(outputs: Sequence[int], slots: int) -> float:
    """The share of the steps' tokens that were asked for, when batches are filled in this order."""
    batches = [outputs[start : start + slots] for start in range(0, len(outputs), slots)]
    return sum(outputs) / sum(max(batch) * slots for batch in batches)
