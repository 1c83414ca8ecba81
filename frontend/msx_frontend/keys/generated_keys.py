"""The keys that the server generates, in TorchServe's key_file.json:

`{"management": {"key", "expiration time"}, "inference": {…}, "API": {"key"}}`
"""

import json
import logging
import math
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from msx_core.rfc3339 import rfc3339
from msx_frontend.keys.key import KINDS, Key, KeyKind, digest_of
from msx_frontend.keys.locked_file import LockedFile
from msx_net.keys import Kind

log = logging.getLogger("msx.keys")

API: KeyKind = "API"
ALL: tuple[KeyKind, ...] = (*KINDS, API)

_DAMAGED = "it was removed, damaged or is too short"
_EMPTY = "the file is empty, or others could read or write it"
_RANDOM_BYTES = 18
"""144 bits, as 24 characters."""
_STRONG = re.compile(r"[\w-]{22,512}", re.ASCII)
"""A key of at least 128 bits, where each character is one of 64."""


@dataclass(frozen=True)
class _GeneratedKey:
    kind: KeyKind
    text: str = field(repr=False)
    until: float = math.inf

    def as_json(self) -> dict[str, str]:
        if self.until == math.inf:
            return {"key": self.text}
        return {"key": self.text, "expiration time": rfc3339(self.until, "milliseconds")}

    def key(self) -> Key:
        return Key(digest_of(self.text), frozenset({self.kind}), until=self.until)


class GeneratedKeys:
    """One key for each kind. Not thread-safe; `renew` and `close` write to the disk."""

    def __init__(
        self, path: Path, lifetime: float, clock: Callable[[], float], *, keep: bool, follows: bool = False
    ) -> None:
        """`lifetime` in seconds, infinite for keys that never expire. With `keep` the file stays when the server
        ends, and the next server uses its valid keys again. `follows`: this one takes another one's place, whose keys
        are used in any case.

        Raises TokenFileError.
        """
        self.path = path.absolute()
        self._lifetime = lifetime
        self._clock = clock
        self._keep, self._takes = keep, keep or follows
        self._made: Mapping[KeyKind, _GeneratedKey] = {}
        self._file = LockedFile(self.path, self._first_text)
        self.keys: dict[KeyKind, Key] = {kind: one.key() for kind, one in self._made.items()}

    def renew(self, kind: Kind) -> Key:
        """Replace the key of this kind, also in the file; returns the old one. Raises TokenFileError; the old key
        stays then."""
        made = {**self._made, kind: self._new(kind)}
        self._file.replace(_text(made))
        old, self._made = self.keys[kind], made
        self.keys[kind] = made[kind].key()
        return old

    def close(self) -> None:
        """May be called again."""
        self._file.close(keep=self._keep)

    def leave(self) -> None:
        """Let another server have the file, with these keys."""
        self._file.close(keep=True)

    def _first_text(self, left: bytes | None) -> str:
        kept = _read(left) if self._takes and left is not None else {}
        if self._takes and left is not None and (lost := [kind for kind in ALL if kind not in kept]):
            log.warning(
                "keep_tokens: %s has no key for %s that can be used (%s): a new one is made, and clients with the "
                "earlier one are refused",
                self.path,
                ", ".join(lost),
                _DAMAGED if left else _EMPTY,
            )
        now = self._clock()
        self._made = {kind: one if (one := kept.get(kind)) and now < one.until else self._new(kind) for kind in ALL}
        return _text(self._made)

    def _new(self, kind: KeyKind) -> _GeneratedKey:
        until = math.inf if kind == API else self._clock() + self._lifetime
        return _GeneratedKey(kind, secrets.token_urlsafe(_RANDOM_BYTES), until)


def _text(made: Mapping[KeyKind, _GeneratedKey]) -> str:
    return json.dumps({kind: made[kind].as_json() for kind in ALL}, indent=2) + "\n"


def _read(content: bytes) -> dict[KeyKind, _GeneratedKey]:
    """The keys of the file that are still valid."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    entries = found if isinstance(found, dict) else {}
    return {kind: one for kind in ALL if (one := _entry(kind, entries.get(kind))) is not None}


def _entry(kind: KeyKind, value: Any) -> _GeneratedKey | None:
    with suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError):
        if not _STRONG.fullmatch(value["key"]):
            return None
        moment = value.get("expiration time")
        until = math.inf if moment is None else datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()
        return _GeneratedKey(kind, value["key"], until)
    return None
