"""The result of a load: how many requests were answered, and how fast."""

from __future__ import annotations

import msgspec


class Result(msgspec.Struct, frozen=True):
    """Times in µs. `errors` counts socket errors, time-outs and answers that are not 2xx or 3xx."""

    requests: int
    micros: int
    p50: int
    p99: int
    errors: int

    @property
    def per_second(self) -> float:
        return self.requests / (self.micros / 1e6)
