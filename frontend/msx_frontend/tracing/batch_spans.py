"""The spans of batches: one call of a handler, in the trace of its first request, with links to all of them."""

from __future__ import annotations

from collections import OrderedDict

from msx_frontend.tracing.sampled_request import SampledRequest
from msx_frontend.tracing.span_texts import BATCH, batch_attributes, link_to, new_ids, parent_of, state_of
from msx_sdk._internal.tracing.otlp_json import span_of

MOST_KNOWN = 1024
"""Batches whose last requests may still end: those of a stream end one by one."""


class TracedBatch:
    """What is known of it after its first request."""

    def __init__(self, first: SampledRequest) -> None:
        self.first, self.trace, [self.span] = first, first.traced.trace, new_ids(1)
        self.link = link_to(self.trace, self.span)
        self.links = list[str]()
        self.start, self.end = first.phases.begun, 0.0

    def encoded(self, epoch: float) -> bytes:
        """`epoch`: seconds to add to the instants of phases."""
        first = self.first
        size = batch_attributes(first.model, first.version, max(first.phases.batch, len(self.links)))
        links = f'"links":[{",".join(self.links)}]'
        members = f"{BATCH},{parent_of(first.own)},{size},{links}{state_of(first.traced.context)}"
        return span_of(self.trace, self.span, self.start + epoch, self.end + epoch, members)


class BatchSpans:
    """The requests that end before `take` have links from their batch's span; later ones only to it."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, float], TracedBatch] = OrderedDict()
        self._new: list[TracedBatch] = []

    def add(self, request: SampledRequest) -> TracedBatch:
        """The batch of the request, which a worker has had."""
        key = request.group, request.phases.begun
        batch = self._known.get(key)
        if batch is None:
            batch = self._known[key] = TracedBatch(request)
            self._new.append(batch)
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        batch.links.append(link_to(request.traced.trace, request.own))
        batch.end = max(batch.end, request.phases.answered)
        return batch

    def take(self, epoch: float) -> list[bytes]:
        """The spans of batches that are new."""
        batches, self._new = self._new, []
        return [one.encoded(epoch) for one in batches]
