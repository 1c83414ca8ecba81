"""The classes of requests: which goes first where several wait. Clients ask for one by a header, or by metadata."""

from msx_core.service_errors import BadRequest

HEADER = "x-msx-priority"
LOW, NORMAL, HIGH = -1, 0, 1
NAMES = {"low": LOW, "normal": NORMAL, "high": HIGH}
GRANTED = ("high", "normal")
"""Classes that may be a key's highest: a request that names none is a normal one."""
FROM_HIGH = (HIGH, NORMAL, LOW)


def priority_of(text: str) -> int:
    """The class of this name; "" is the usual one. Raises BadRequest."""
    found = NAMES.get(text.strip().lower()) if text else NORMAL
    if found is None:
        raise BadRequest(f"{HEADER}: {text[:40]!r} is not one of {', '.join(NAMES)}.")
    return found


def name_of(priority: int) -> str:
    return next(name for name, value in NAMES.items() if value == priority)


def class_headers(priority: int) -> list[tuple[str, str]]:
    """Headers that tell workers the class of a gRPC call: engines of language models have an order of their own."""
    return [(HEADER, name_of(priority))] if priority != NORMAL else []
