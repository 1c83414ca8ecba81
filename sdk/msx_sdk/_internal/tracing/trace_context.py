"""W3C's trace context: the headers `traceparent` and `tracestate` (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import re
from random import getrandbits
from typing import NamedTuple

PARENT, STATE = "traceparent", "tracestate"
LONGEST_STATE = 512
"""Characters that must be passed on at least; a longer one is left out."""

TraceHeaders = tuple[str, str]
"""Both, as the client sent them."""

_PARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


class TraceContext(NamedTuple):
    """A span that has a place in a trace."""

    trace_id: int
    span_id: int
    sampled: bool
    state: str = ""

    @property
    def trace(self) -> str:
        """The id of the trace in hexadecimal, as it is written everywhere."""
        return f"{self.trace_id:032x}"

    @property
    def span(self) -> str:
        return f"{self.span_id:016x}"

    @property
    def header(self) -> str:
        return f"00-{self.trace}-{self.span}-{int(self.sampled):02x}"

    def child(self) -> TraceContext:
        """A new span of the same trace."""
        return TraceContext(self.trace_id, getrandbits(64) or 1, self.sampled, self.state)


def new_trace(*, sampled: bool = True) -> TraceContext:
    return TraceContext(getrandbits(128) or 1, getrandbits(64) or 1, sampled)


def parsed(parent: str, state: str = "") -> TraceContext | None:
    """None for what is not a `traceparent`: then a trace begins here. Later versions may have further parts."""
    found = _PARENT.fullmatch(parent.strip())
    if found is None or (found[1] == "00" and found[5]):
        return None
    kept = state if len(state) <= LONGEST_STATE else ""
    return TraceContext(int(found[2], 16), int(found[3], 16), bool(int(found[4], 16) & _SAMPLED), kept)
