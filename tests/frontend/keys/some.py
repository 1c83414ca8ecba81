"""Keys for tests that do not check any."""

from __future__ import annotations

import math

from msx_frontend.keys.key import Key, digest_of
from msx_frontend.keys.rate import Rate

SELDOM = 0.001
"""Requests per second: one, and then none while a test runs."""


def some_key(
    name: str = "",
    *,
    until: float = math.inf,
    models: tuple[str, ...] = (),
    rate: float | None = None,
    text: str = "K",
) -> Key:
    allowed = frozenset(models) if models else None
    limit = None if rate is None else Rate(rate)
    return Key(digest_of(text), frozenset({"inference"}), name, until=until, models=allowed, rate=limit)
