"""Time of a retry that a refusal names."""

from __future__ import annotations

import math
from collections.abc import Mapping


def told_wait(headers: Mapping[str, str]) -> float:
    """Seconds; the two headers say the same."""
    seconds = int(headers["retry-after-ms"]) / 1000
    assert int(headers["retry-after"]) in (math.ceil(seconds), math.ceil(seconds) + 1)  # the milliseconds are rounded
    assert 1 <= seconds <= 30
    return seconds
