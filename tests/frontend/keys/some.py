"""Keys for tests that do not check any."""

from __future__ import annotations

import math

from msx_core.service_errors import InvalidKey
from msx_frontend.keys.key import Key, digest_of
from msx_frontend.keys.rate import Rate
from msx_net.keys import Kind

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


class OneKey:
    """Tokens of which one is good: K, for one kind of call."""

    def __init__(self, key: Key | None = None, kind: Kind = "inference") -> None:
        self._key, self._kind = key or some_key(), kind

    def check(self, kind: Kind, authorization: str | None) -> Key:
        if (kind, authorization) != (self._kind, "Bearer K"):
            raise InvalidKey("Token refused")
        return self._key
