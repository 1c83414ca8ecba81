"""Checks one entry of a keys file. Errors name the entry and the member, never the value of a key."""

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, timezone
from typing import Annotated, Any, get_args

from msgspec import Meta

from msx_core.priorities import GRANTED, NAMES
from msx_core.values import ConfigError, convert, near_miss, show
from msx_frontend.keys.key import LONGEST, Key, KeyKind, digest_of
from msx_frontend.keys.rate import Rate

MEMBERS = ("name", "key", "kind", "expires", "models", "apps", "priority", "rate")
SHORT = 16
"""Characters: a shorter key can be guessed."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/+-]{0,63}")
_KEY = re.compile(r"[!-~]+")
_MODELS = Annotated[
    list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1, max_length=1000, description="a list of models")
]
_APPS = Annotated[
    list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1, max_length=1000, description="a list of apps")
]
_NAMES = {"models": _MODELS, "apps": _APPS}
_RATE = Annotated[float, Meta(ge=1e-3, le=1e6, description="a number of requests per second, from 0.001 to 1000000")]


def read_entry(number: int, value: Any) -> tuple[Key, bool]:
    """The key, and whether it is short. Raises ConfigError."""
    if not isinstance(value, dict):
        raise ConfigError(f"entry {number} is not a mapping with {', '.join(MEMBERS)}")
    name = value.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"entry {number}: name: {show(name)} is not a name of up to 64 letters, digits and ._@:/+-, "
            "which begins with a letter or digit"
        )
    try:
        return _key(name, value), len(value["key"]) < SHORT
    except ConfigError as error:
        raise ConfigError(f"entry {number} ({name}): {error}") from None


def checked_key(text: Any) -> str:
    """Check the text of a key. Raises ConfigError, whose message does not show the key."""
    if not isinstance(text, str):
        raise ConfigError("key: is not a text: put it in quotes" if text is not None else "key: is missing")
    if not _KEY.fullmatch(text) or len(text) > LONGEST:
        raise ConfigError(f"key: is not a text of 1 to {LONGEST} printable ASCII characters without spaces")
    return text


def _key(name: str, value: Mapping[str, Any]) -> Key:
    for member in value:
        if member not in MEMBERS:
            meant = near_miss(str(member), MEMBERS)
            raise ConfigError(f"{show(member)[1:-1]}: is not a member" + (f"; did you mean {meant}?" if meant else ""))
    kinds = _kinds(value.get("kind"))
    models, apps = _limits(value, kinds)
    rate = None if value.get("rate") is None else Rate(convert("rate", value["rate"], _RATE))
    until, priority = _moment(value.get("expires")), _priority(value.get("priority", "normal"))
    digest = digest_of(checked_key(value.get("key")))
    return Key(digest, kinds, name, until=until, models=models, apps=apps, rate=rate, priority=priority)


def _limits(value: Mapping[str, Any], kinds: frozenset[KeyKind]) -> tuple[frozenset[str] | None, ...]:
    """The models and the apps that a key is good for: of a key that names some of either, no others."""
    given = [name for name in ("models", "apps") if value.get(name) is not None]
    if given and kinds != {"inference"}:
        raise ConfigError(f"{given[0]}: only a key whose kind is inference alone can be limited to {given[0]}")
    found = {name: frozenset(convert(name, value[name], _NAMES[name])) for name in given}
    return tuple(found.get(name, frozenset()) if given else None for name in ("models", "apps"))


def _priority(value: Any) -> int:
    if not isinstance(value, str) or value not in GRANTED:
        raise ConfigError(f"priority: {show(value)} is not {' or '.join(GRANTED)}, the highest class of its requests")
    return NAMES[value]


def _kinds(value: Any) -> frozenset[KeyKind]:
    given = value if isinstance(value, list) else [value]
    found = frozenset(kind for kind in get_args(KeyKind) if kind in given)
    if not given or len(found) != len(given):
        raise ConfigError(f"kind: {show(value)} is not inference, management, API, or a list of them")
    return found


def _moment(value: Any) -> float:
    """The expiry in seconds since the epoch. A time without an offset is in UTC; a date means the beginning of the
    day."""
    if value is None:
        return math.inf
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00")) if isinstance(value, str) else value
        if isinstance(moment, date) and not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day)
        if isinstance(moment, datetime):
            return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        pass
    raise ConfigError(f"expires: {show(value)} is not a time like 2027-01-31T12:00:00Z")
