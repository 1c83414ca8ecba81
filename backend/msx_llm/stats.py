"""Statistics of the engine, and durations of requests and steps."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import msgspec

Part = Literal["model", "sampling", "scheduling", "messaging"]


class StepSeconds(msgspec.Struct, kw_only=True):
    """Sums since the start. Deltas are made while the next step runs, so that most of `messaging` overlaps with
    `model`."""

    model: float = 0.0
    sampling: float = 0.0
    scheduling: float = 0.0
    messaging: float = 0.0

    @contextmanager
    def measure(self, part: Part) -> Iterator[None]:
        """Measures a block. Code that awaits is measured only if nothing else runs meanwhile."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(part, time.perf_counter() - start)

    def add(self, part: Part, seconds: float) -> None:
        setattr(self, part, getattr(self, part) + seconds)


class EngineStats(msgspec.Struct, kw_only=True):
    """`running` and `waiting` are texts; `preempted`, `steps` and all tokens are counted since the start."""

    running: int = 0
    waiting: int = 0
    preempted: int = 0
    requests: int = 0
    """Requests in progress."""
    blocks_used: int = 0
    blocks_total: int = 0
    prefix_placed: int = 0
    """Tokens of texts that got a slot; of these, `prefix_hit` were in the cache."""
    prefix_hit: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    drafted: int = 0
    """Tokens of drafts that were computed; of these, `accepted` became tokens of texts."""
    accepted: int = 0
    adapters: dict[str, tuple[int, int]] = {}
    """Texts of each adapter: running, and waiting."""
    adapters_loaded: int = 0
    """Adapters in the device's places, of which there are `adapter_places`."""
    adapter_places: int = 0
    steps: int = 0
    seconds: StepSeconds = msgspec.field(default_factory=StepSeconds)


@dataclass(slots=True)
class RequestTimes:
    """Seconds on the clock of `time.monotonic`; None: not yet."""

    arrived: float = field(default_factory=time.monotonic)
    started: float | None = None
    first: float | None = None
    ended: float | None = None

    @property
    def queued(self) -> float | None:
        """Seconds until the first step."""
        return None if self.started is None else self.started - self.arrived

    @property
    def to_first_token(self) -> float | None:
        return None if self.first is None else self.first - self.arrived

    @property
    def total(self) -> float | None:
        return None if self.ended is None else self.ended - self.arrived
