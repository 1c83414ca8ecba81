"""When a refused client may ask again, as HTTP's and gRPC's clients are told it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

SHORTEST, LONGEST = 1.0, 30.0
"""Seconds."""

AFTER, AFTER_MS = "retry-after", "retry-after-ms"
"""RFC 9110's whole seconds; the milliseconds that OpenAI's clients read first."""

PUSHBACK = "grpc-retry-pushback-ms"
"""What gRPC's clients with a retry policy obey (gRFC A6)."""


def retry_headers(wait: float) -> tuple[tuple[str, str], ...]:
    """`wait`: seconds until there may be room. Clients that are refused together are told times up to twice as long:
    together they would find no room again."""
    least = min(max(wait, SHORTEST), LONGEST / 2)
    seconds = random.uniform(least, 2 * least)  # noqa: S311  # spreads, and hides nothing
    return (AFTER, str(math.ceil(seconds))), (AFTER_MS, str(round(seconds * 1000)))


def retry_metadata(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What of an error's HTTP headers is metadata of a gRPC status."""
    told = [pair for pair in headers if pair[0] in (AFTER, AFTER_MS)]
    return [*told, *((PUSHBACK, value) for name, value in told if name == AFTER_MS)]
