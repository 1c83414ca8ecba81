"""The sampled requests that a handler works on now."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Protocol

from msx_core.tracing.trace_context import PARENT, STATE, TraceContext, parsed
from msx_core.tracing.variables import TRACING

ENABLED = os.environ.get(TRACING) == "1"
"""The server that started this worker traces."""


class HasHeaders(Protocol):
    @property
    def headers(self) -> ReadsHeaders: ...


class ReadsHeaders(Protocol):
    def get(self, key: str, default: str = "", /) -> str: ...


_current: ContextVar[Sequence[HasHeaders]] = ContextVar("current_requests", default=())


def work_on(requests: Sequence[HasHeaders]) -> None:
    """Say that these requests are worked on in this context from now on. Their headers are read when somebody asks."""
    _current.set(requests)


def traced_requests() -> tuple[TraceContext, ...]:
    """The spans of those that are sampled."""
    found = (parsed(one.headers.get(PARENT, ""), one.headers.get(STATE, "")) for one in _current.get())
    return tuple(one for one in found if one is not None and one.sampled)
