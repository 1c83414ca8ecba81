"""The sampled requests that a handler works on now."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Protocol

from msx_sdk._internal.tracing.trace_context import PARENT, STATE, TraceContext, parsed

VARIABLE = "MSX_TRACING"
ENABLED = os.environ.get(VARIABLE) == "1"
"""The server that started this worker traces."""

_current: ContextVar[tuple[TraceContext, ...]] = ContextVar("traced_requests", default=())


class HasHeaders(Protocol):
    @property
    def headers(self) -> ReadsHeaders: ...


class ReadsHeaders(Protocol):
    def get(self, key: str, default: str = "", /) -> str: ...


def traced_requests() -> tuple[TraceContext, ...]:
    return _current.get()


def work_on(requests: Iterable[HasHeaders]) -> None:
    """From now on, in this context."""
    found = (parsed(one.headers.get(PARENT, ""), one.headers.get(STATE, "")) for one in requests)
    _current.set(tuple(one for one in found if one is not None and one.sampled))
