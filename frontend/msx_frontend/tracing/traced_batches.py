"""The batches of requests: one call of a handler, in the trace of its first request, with links to all of them."""

from collections import OrderedDict

from msx_core.tracing.trace_context import new_span
from msx_frontend.tracing.sampled_request import SampledRequest
from msx_frontend.tracing.span_texts import link_to

MOST_KNOWN = 1024
"""Batches whose last requests may still end: those of a stream end one by one."""


class TracedBatch:
    """Batch after its first request, whose spans have its own."""

    __slots__ = ("end", "first", "link", "links", "span")

    def __init__(self, first: SampledRequest) -> None:
        self.first, self.span = first, new_span()
        self.link = link_to(first.context.trace, self.span)
        self.links = list[str]()
        self.end = 0.0


class TracedBatches:
    """The requests that end before a batch's span is written have links from it; later ones only to it."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int | None, float], TracedBatch] = OrderedDict()

    def add(self, request: SampledRequest) -> TracedBatch:
        """The batch of the request, which a worker has had."""
        key = request.group, request.phases.begun
        batch = self._known.get(key)
        if batch is None:
            batch = self._known[key] = TracedBatch(request)
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        batch.links.append(link_to(request.context.trace, request.context.span))
        batch.end = max(batch.end, request.phases.answered)
        return batch
