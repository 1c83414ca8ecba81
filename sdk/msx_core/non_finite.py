"""NaN and infinities of replies, for which JSON has null: they are counted, and told in the log."""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from msx_core.failures import shortened

COUNTER = "msx_non_finite_replies"
HELP = "Replies in which JSON has null for NaN or an infinity"
TELL_EVERY = 60.0
"""Seconds between two lines of the log: a model that fails so does it for every request."""
NULL = b"null"
_DEEPEST = 100
LONGEST_PLACE = 200
"""Characters: names of members may be a client's."""

log = logging.getLogger("msx.worker")


class NonFinite:
    """Watch a model's replies for NaN and infinity: each calls `count`; `labels` are of the log's line."""

    def __init__(
        self,
        count: Callable[[], object] = int,
        logger: logging.Logger = log,
        labels: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.count, self._log, self._labels = count, logger, labels
        self._clock, self._told, self._paused = clock, -math.inf, False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Counts nothing of replies that no client gets: zeros that a handler makes up to warm up may well have no
        mean."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def check(self, encoded: bytes | bytearray, value: Any) -> None:
        """Look at the value of a reply whose JSON is `encoded`."""
        if not self._paused and (place := place_in(encoded, value)) is not None:
            self.found(place)

    def found(self, place: str) -> None:
        """Count a reply that has one at this place."""
        self.count()
        now = self._clock()
        if now - self._told < TELL_EVERY:
            return
        self._told = now
        self._log.warning(
            "a reply has NaN or an infinity at %s, for which JSON has null: look at the model and its inputs (a mask "
            "of zeros, a length of 0, a number that the type cannot hold). %s counts such replies; this line comes "
            "once in %.0f s at most",
            place,
            COUNTER,
            TELL_EVERY,
            extra=self._labels,
        )


non_finite = NonFinite()
"""Where the encoders of a worker report to; its model's metrics are given when it loads."""


def place_in(encoded: bytes | bytearray, value: Any) -> str | None:
    """`first_place` of a value whose JSON is `encoded`: a search for `null` is all that most replies cost."""
    return first_place(value) if NULL in encoded else None


def first_place(value: Any) -> str | None:
    """The member that is NaN or infinite, as `scores[3]`; None where all numbers are finite."""
    try:
        place = next(_places(value, "", 0), None)
    except Exception:  # of a handler's own types: a reply that has its JSON does not fail for what would be told
        return None
    return place and shortened(place, LONGEST_PLACE)


def finite(value: Any) -> Any:
    """Lists, dicts and numbers with None for NaN and infinities, for an encoder that would write them as they are."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(member) for name, member in value.items()}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _places(value: Any, place: str, depth: int) -> Iterator[str]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield place or "its top"
    elif isinstance(value, (str, bytes, bytearray, int)) or value is None or depth > _DEEPEST:
        return
    elif isinstance(value, msgspec.Raw):  # numbers that are JSON already
        yield from (f"{place}[{index}]" for index, item in enumerate(msgspec.json.decode(value)) if item is None)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _places(member, f"{place}.{name}" if place else str(name), depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            if not isinstance(item, float) or not math.isfinite(item):
                yield from _places(item, f"{place}[{index}]", depth + 1)
    else:
        yield from _places_in_object(value, place, depth)


def _places_in_object(value: Any, place: str, depth: int) -> Iterator[str]:
    """Places in arrays and tensors, and in structs, dataclasses and pydantic's models."""
    array = value.asnumpy() if hasattr(value, "asnumpy") else value
    if hasattr(array, "dtype") and hasattr(array, "tolist"):
        is_numpy = hasattr(array.dtype, "kind")  # torch's types have none
        if not is_numpy or (array.dtype.kind == "f" and not sys.modules["numpy"].isfinite(array).all()):
            yield from _places(array.tolist(), place, depth + 1)
    elif hasattr(value, "model_dump"):
        yield from _places(value.model_dump(), place, depth + 1)
    else:
        yield from _places(msgspec.to_builtins(value, enc_hook=_as_it_is), place, depth + 1)


def _as_it_is(value: Any) -> Any:
    array = value.asnumpy() if hasattr(value, "asnumpy") else value
    if hasattr(array, "tolist"):
        return array.tolist()
    raise TypeError(f"{type(value).__name__} has no members")
