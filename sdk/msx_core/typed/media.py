"""Which form a body has, and which one a client wants."""

from functools import lru_cache

from msx_core.bodies import JSON, media_type

MSGPACK = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")
_ANY = ("*/*", "application/*")


@lru_cache(maxsize=1000)
def says_msgpack(content_type: str) -> bool:
    kind = media_type(content_type)
    return kind in MSGPACK or kind.endswith("+msgpack")


@lru_cache(maxsize=1000)
def wanted_msgpack(accept: str) -> str:
    """The type of a MessagePack reply, as the header `Accept` names it; "" where JSON will do as well, or better.

    Of types with the same weight, one that is named goes before a wildcard, and the first before others.
    """
    best, name = (0.0, 0), JSON
    for entry in accept.split(","):
        kind, weight = media_type(entry), _weight(entry)
        if kind not in (JSON, *MSGPACK, *_ANY) or weight <= 0:
            continue
        if (rank := (weight, int(kind not in _ANY))) > best:
            best, name = rank, kind
    return name if name in MSGPACK else ""


def _weight(entry: str) -> float:
    """Weight of an entry: 1 without a `q`, 0 for one that is not a number from 0 to 1."""
    for parameter in entry.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0
