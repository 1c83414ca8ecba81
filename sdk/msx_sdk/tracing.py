"""Spans of a handler's own, in the traces of the requests that it works on.

They cost nothing where the server does not trace (docs/tracing.md), or the requests are not sampled.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from msx_core.tracing.current import ENABLED, traced_requests
from msx_core.tracing.span import Span, Value
from msx_core.tracing.trace_context import TraceContext

if TYPE_CHECKING:
    from msx_core.tracing.export import SpanExport

__all__ = ["span", "traceparent"]

log = logging.getLogger("msx.tracing")

LONGEST_ERROR = 500
END_LIMIT = 2.0
"""Seconds that the end of a worker waits for its last spans."""
_open: ContextVar[TraceContext | None] = ContextVar("open_span", default=None)
_exports: list[SpanExport | None] = []


@contextmanager
def span(name: str, **attributes: Value) -> Iterator[None]:
    """The time of the block as a span below the request's, or below the span around it.

    In a batch of several sampled requests it stands in the trace of the first one and has links to the others. An
    exception makes it a failed span, and goes on.
    """
    requests = traced_requests()
    parent = _open.get() or (requests[0] if requests else None)
    if not ENABLED or parent is None:
        yield
        return
    made, start, error = parent.child(), time.time(), None
    token = _open.set(made)
    try:
        yield
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}"[:LONGEST_ERROR]
        raise
    finally:
        _open.reset(token)
        links = requests[1:] if requests and parent == requests[0] else ()
        if (export := _export()) is not None:
            export.offer(Span(name, made, parent, start, time.time(), attributes, links=links, error=error))


def traceparent() -> str:
    """The header to send to other services, as W3C has it; "" where nothing is traced."""
    requests = traced_requests()
    found = _open.get() or (requests[0] if requests else None)
    return found.header if found is not None else ""


def _export() -> SpanExport | None:
    """Made with the first span; its end sends what waits. None where the environment's settings cannot be used: no
    handler fails because of its spans."""
    if not _exports:
        import atexit

        from msx_core.tracing.export import SpanExport

        made: SpanExport | None = None
        try:
            made = SpanExport("", "msx-serve", {"process.pid": os.getpid(), "msx.process": "worker"})
            atexit.register(made.close, END_LIMIT)
        except (ValueError, OSError) as error:
            log.warning("The spans of this worker are not sent: %s.", error)
        _exports.append(made)
    return _exports[0]
