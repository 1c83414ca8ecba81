"""When a refused client may try again, for clients of HTTP and gRPC."""

import math
import random
from collections.abc import Iterable

SHORTEST, LONGEST = 1.0, 30.0
"""Seconds."""

AFTER, AFTER_MS = "retry-after", "retry-after-ms"
"""The header of RFC 9110 in whole seconds, and that of OpenAI's clients in milliseconds."""

PUSHBACK = "grpc-retry-pushback-ms"
"""The metadata that gRPC clients with a retry policy use (gRFC A6)."""


def retry_headers(wait: float) -> tuple[tuple[str, str], ...]:
    """`wait`: seconds until there may be room. The time is random, up to twice as long, so that refused clients do
    not all return at once."""
    least = min(max(wait, SHORTEST), LONGEST / 2)
    seconds = random.uniform(least, 2 * least)  # noqa: S311  # spreads, and hides nothing
    return (AFTER, str(math.ceil(seconds))), (AFTER_MS, str(round(seconds * 1000)))


def retry_metadata(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The metadata of a gRPC status among an error's HTTP headers."""
    told = [pair for pair in headers if pair[0] in (AFTER, AFTER_MS)]
    return [*told, *((PUSHBACK, value) for name, value in told if name == AFTER_MS)]
