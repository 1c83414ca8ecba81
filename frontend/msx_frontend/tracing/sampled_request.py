"""Record of a sampled request that has ended, until its spans are written with those of others."""

from typing import NamedTuple

from msx_core.tracing.trace_context import TraceContext
from msx_frontend.job import PREDICT
from msx_frontend.metrics.phases import Phases

Traced = tuple[TraceContext, TraceContext | None]
"""Spans of a sampled job until its end: its own, and the client's."""


def operation_of(kind: str) -> str:
    """Operation of this kind of job, as its span is named."""
    _, colon, method = kind.partition(":")
    return (method if colon else kind) or PREDICT


class SampledRequest(NamedTuple):
    context: TraceContext
    parent: TraceContext | None
    """The client's span."""
    id: str
    operation: str
    status: int
    error: str | None
    """Why the server has failed."""
    phases: Phases
    group: int | None
    """A number of the worker group that had it; None where the spans of a graph's nodes are below it."""
    model: str
    version: str
