"""Instants at which methods begin or end, by CLOCK_MONOTONIC, which all processes of a machine share.

Nothing here is MSX's: a server's process and its worker's both use it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

Marks = dict[str, list[int]]
"""Nanoseconds, by the name of the mark."""


def mark(marks: Marks, owner: type, method: str, *, begin: str = "", end: str = "") -> None:
    """Note when this method of a class begins and ends from now on, under these names."""
    noting = _noting(getattr(owner, method), _note(marks, begin), _note(marks, end))
    setattr(owner, method, noting)


def _noting(
    function: Callable[..., Any], begun: Callable[[int], object], ended: Callable[[int], object]
) -> Callable[..., Any]:
    @functools.wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        begun(perf_counter_ns())
        result = function(*args, **kwargs)
        ended(perf_counter_ns())
        return result

    return noting


def _note(marks: Marks, name: str) -> Callable[[int], object]:
    return marks.setdefault(name, []).append if name else lambda instant: None
