"""A span that has ended."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msx_core.tracing.trace_context import TraceContext

Value = str | bool | int | float


class Span(NamedTuple):
    """Times are in seconds since the epoch."""

    name: str
    context: TraceContext
    parent: TraceContext | None
    start: float
    end: float
    attributes: Mapping[str, Value]
    kind: Literal["internal", "server"] = "internal"
    links: tuple[TraceContext, ...] = ()
    error: str | None = None
    """Why it failed; None where it did not."""
    events: tuple[tuple[str, float], ...] = ()
    """Names and times."""
