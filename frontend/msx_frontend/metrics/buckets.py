"""Default bounds of histograms, by their unit."""

from collections.abc import Iterator
from functools import lru_cache
from math import inf

from prometheus_client import Histogram

from msx_core.metrics.kinds import UNITS

_LARGEST = {"Milliseconds": 1e5, "Seconds": 1e3, "Percent": 100, "Bytes": 1e9}


@lru_cache(maxsize=256)
def default_buckets(unit: str) -> tuple[float, ...]:
    """Buckets of TorchServe, 0.005 to 10 for all units, for dashboards that name them; and on to where values of the
    unit end: 100 s in milliseconds, 100 %, 10^9 bytes, 1000 s, else 10^6."""
    torchserves = tuple(bound for bound in Histogram.DEFAULT_BUCKETS if bound != inf)
    return (*torchserves, *_beyond(torchserves[-1], _LARGEST.get(UNITS.get(unit, unit), 1e6)))


def _beyond(decade: float, largest: float) -> Iterator[float]:
    while decade < largest:
        yield from (decade * 2.5, decade * 5, decade * 10)
        decade *= 10
