"""Handlers whose `handle` is preprocess, inference and postprocess, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

__all__ = ["MARK", "STEPS", "ThreeSteps", "three_steps"]

STEPS = ("preprocess", "inference", "postprocess")

Handle = TypeVar("Handle", bound=Callable[..., Any])

MARK = "three_steps"


class ThreeSteps(NamedTuple):
    """A `handle` that calls `preprocess`, `inference` and `postprocess`, and does nothing else but to report the
    milliseconds that they took as `metric`, if that is a name. `names`: the methods that a worker calls for them, where
    `handle` does so, too: they call the steps. `others`: methods that `handle` calls besides, and a worker does not: a
    class that overrides one of them has a `handle` of its own."""

    metric: str = ""
    names: tuple[str, str, str] = STEPS
    others: tuple[str, ...] = ()


def three_steps(
    metric: str = "", names: tuple[str, str, str] = STEPS, others: tuple[str, ...] = ()
) -> Callable[[Handle], Handle]:
    """Mark the `handle` of a base class as nothing but its three steps (see `ThreeSteps`)."""

    def mark(handle: Handle) -> Handle:
        setattr(handle, MARK, ThreeSteps(metric, names, others))
        return handle

    return mark
