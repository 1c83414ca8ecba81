"""Rules that say how many workers there should be: ours, Ray Serve's, and a fixed number."""

from __future__ import annotations

from collections import deque
from math import ceil
from typing import Protocol

from msx_core.config import AutoscalingOptions
from msx_frontend.models.autoscaling.decide import decide
from msx_frontend.models.autoscaling.history import History
from msx_frontend.models.autoscaling.reading import Reading
from msx_frontend.models.autoscaling.timer import INTERVAL


class Rule(Protocol):
    interval: float
    """Seconds between two decisions."""

    def wanted(self, reading: Reading) -> int: ...


class Ours:
    """The code of the server, with its defaults."""

    interval = INTERVAL

    def __init__(self, workers: int, options: AutoscalingOptions) -> None:
        self._options, self._history = options, History(workers)

    def wanted(self, reading: Reading) -> int:
        return decide(reading, self._options, self._history).wanted


class Fixed:
    interval = 60.0

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def wanted(self, reading: Reading) -> int:
        return self._workers


class RayServe:
    """The rule that Ray Serve documents, with its defaults:
    https://docs.ray.io/en/latest/serve/advanced-guides/advanced-autoscaling.html.

    The mean of requests that wait or run over `look_back` seconds, divided by replicas and target, says by what to
    multiply the replicas, dampened by the factors; it must say so for the whole of a delay.
    """

    interval = 1.0

    def __init__(
        self,
        *,
        target: float = 2.0,
        up_delay: float = 30.0,
        down_delay: float = 600.0,
        look_back: float = 30.0,
        up_factor: float = 1.0,
        down_factor: float = 1.0,
    ) -> None:
        self._target, self._look_back = target, look_back
        self._delays = {1: up_delay, -1: down_delay}
        self._factors = {1: up_factor, -1: down_factor}
        self._ongoing: deque[tuple[float, int]] = deque()
        self._side, self._since = 0, 0.0

    def wanted(self, reading: Reading) -> int:
        now, replicas = reading.now, reading.present
        self._ongoing.append((now, reading.demand))
        while self._ongoing[0][0] < now - self._look_back:
            self._ongoing.popleft()
        mean = sum(count for _, count in self._ongoing) / len(self._ongoing)
        error = mean / (self._target * replicas) if replicas else 1.0
        factor = self._factors[1 if error >= 1 else -1]
        desired = min(max(ceil(replicas * (1 + (error - 1) * factor)), reading.least), reading.most)
        side = (desired > replicas) - (desired < replicas)
        if side != self._side:
            self._side, self._since = side, now
        return desired if side and now - self._since >= self._delays[side] else replicas
