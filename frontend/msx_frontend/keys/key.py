"""One key: its owner, rights, expiry and rate. Only its digest is kept, so that logs cannot show the key."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from functools import lru_cache
from time import monotonic
from typing import Literal

from msx_core.priorities import NORMAL, name_of
from msx_core.service_errors import AppNotAllowed, ModelNotAllowed, PriorityNotAllowed, TooManyRequests
from msx_frontend.keys.rate import Rate
from msx_net.keys import Kind
from msx_net.model_names import ModelNames

KINDS: tuple[Kind, ...] = ("management", "inference")
KeyKind = Literal["inference", "management", "API"]
"""The third kind is for `/token` only."""

LONGEST = 512
"""Characters of a key that an operator gives."""

_BEARER = re.compile(r"bearer\s+(\S+)", re.IGNORECASE)
"""RFC 9110, 11.1: upper and lower case of the scheme do not matter."""
_SALT = secrets.token_bytes(32)
_NO_ALIASES = ModelNames()


class Key:
    """`until`: seconds since the epoch; 0 for a withdrawn key. A connection that has kept the key sees that at once."""

    __slots__ = ("apps", "digest", "kinds", "models", "name", "names", "priority", "rate", "until")

    def __init__(
        self,
        digest: bytes,
        kinds: frozenset[KeyKind],
        name: str = "",
        *,
        until: float = math.inf,
        models: frozenset[str] | None = None,
        apps: frozenset[str] | None = None,
        rate: Rate | None = None,
        priority: int = NORMAL,
    ) -> None:
        """`name` is empty for a generated key; `models` and `apps` are None for a key for all of them, and where one of
        them is given, the other one is given, too; `priority` is the highest class of its requests."""
        self.priority = priority
        self.digest = digest
        self.kinds = kinds
        self.name = name
        self.until = until
        self.models, self.apps = models, apps
        self.rate = rate
        self.names = _NO_ALIASES
        """The server's, once it has the key."""

    def take(self) -> None:
        """Count one request. Raises TooManyRequests above the rate of the key."""
        if self.rate is not None and (wait := self.rate.take(monotonic())):
            raise TooManyRequests(self.name, self.rate.per_second, wait)

    def check_priority(self, asked: int) -> None:
        """Raises PriorityNotAllowed."""
        if asked > self.priority:
            raise PriorityNotAllowed(self.name, name_of(asked), name_of(self.priority))

    def check_model(self, model: str) -> None:
        """`model` may name a method, too (`m:method`). Raises ModelNotAllowed."""
        if not self.allows(model):
            raise ModelNotAllowed(self.name, model, sorted(self.models or ()))

    def check_app(self, app: str) -> None:
        """Raises AppNotAllowed."""
        if self.apps is not None and app not in self.apps:
            raise AppNotAllowed(self.name, app)

    def allows(self, model: str) -> bool:
        if self.models is None:
            return True
        name = model.partition(":")[0]  # names of models have no colon
        return self.names.aliases.get(name, name) in self.models

    def same_as(self, other: Key) -> bool:
        """Equal in all given values; without the requests that were counted."""
        return self._given() == other._given()

    def _given(self) -> tuple[object, ...]:
        rate = None if self.rate is None else self.rate.per_second
        return self.digest, self.kinds, self.name, self.until, self.models, self.apps, rate, self.priority


def digest_of(text: str) -> bytes:
    """The digest by which keys are found. It has a secret salt, so that the time of a lookup does not reveal a key."""
    return hashlib.blake2b(text.encode(errors="surrogateescape"), key=_SALT, digest_size=32).digest()


def digest_in(authorization: str | None) -> bytes:
    """The digest of the key in the header, valid or not; empty without a key."""
    if authorization is None or len(authorization) > 2 * LONGEST:
        return b""
    return _digest_in(authorization)


@lru_cache(maxsize=1024)
def _digest_in(authorization: str) -> bytes:
    match = _BEARER.fullmatch(authorization)
    return b"" if match is None else digest_of(match[1])
