"""W3C's trace context: the headers `traceparent` and `tracestate` (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import re
from random import getrandbits
from typing import NamedTuple

PARENT, STATE = "traceparent", "tracestate"
PARENT_LENGTH = 55
"""Characters of a `traceparent` that is made here."""
LONGEST_STATE = 512
"""Characters that must be passed on at least; a longer one is left out."""

TraceHeaders = tuple[str, str]
"""Both, as the client sent them."""

_PARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


class TraceContext(NamedTuple):
    """A span that has a place in a trace. Ids are hexadecimal, as they are written everywhere: 32 and 16 digits."""

    trace: str
    span: str
    sampled: bool
    state: str = ""

    @property
    def header(self) -> str:
        return f"00-{self.trace}-{self.span}-0{int(self.sampled)}"

    def child(self) -> TraceContext:
        """A new span of the same trace."""
        return TraceContext(self.trace, new_span(), self.sampled, self.state)


def new_trace(*, sampled: bool = True) -> TraceContext:
    text = f"{getrandbits(192):048x}"  # that an id of it is 0, which is not one, does not happen: 2**-64
    return TraceContext(text[:32], text[32:], sampled)


def new_span() -> str:
    return f"{getrandbits(64):016x}"


def parsed(parent: str, state: str = "") -> TraceContext | None:
    """None for what is not a `traceparent`: then a trace begins here. Later versions may have further parts."""
    found = _PARENT.fullmatch(parent.strip())
    if found is None or (found[1] == "00" and found[5]):
        return None
    kept = state if len(state) <= LONGEST_STATE else ""
    return TraceContext(found[2], found[3], bool(int(found[4], 16) & _SAMPLED), kept)
