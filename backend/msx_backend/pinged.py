"""The worker, as a ping of the server finds it."""

import logging

from msx_backend.loop_watch import LoopWatch
from msx_backend.parallel.reports import collectives
from msx_backend.replies import ReplyWriter
from msx_backend.segments.space import SegmentSpace
from msx_protocol import MetricInfo, MetricSample, Pong
from msx_sdk.metrics import Metrics

log = logging.getLogger("msx.worker")


class PingedWorker:
    """Answers pings on the control thread, about once a second. `parallel`: it is a rank of a group."""

    def __init__(self, replies: ReplyWriter, segments: SegmentSpace | None, *, parallel: bool) -> None:
        self._replies, self._segments, self._parallel = replies, segments, parallel
        self.metrics: Metrics | None = None
        """None until the handler is imported."""
        self.watch: LoopWatch | None = None
        """Watch over the loop of an async handler."""
        self._lost = 0

    def pong(self, sequence: int, seconds: float) -> Pong:
        """Answer a ping. The handler's call has run for `seconds`."""
        self._replies.send_early_heads()
        if self._segments is not None:
            self._return(self._segments)
        imported = self.metrics is not None  # before, the module that counts may be half imported
        counts = collectives() if self._parallel and imported else {}
        samples = self._samples()  # before the forms, of which one may be newer than its first sample
        return Pong(sequence, self._replies.progress, seconds, samples, counts, self._forms())

    def _return(self, segments: SegmentSpace) -> None:
        segments.tick()
        if returned := segments.take_returned(collect=False):
            self._replies.returned(returned)
            self._replies.flush_now()

    def _forms(self) -> list[MetricInfo]:
        return [] if self.metrics is None else [MetricInfo(*form) for form in self.metrics.descriptors.take()]

    def _samples(self) -> list[MetricSample]:
        if self.metrics is None:
            return []
        taken = self.metrics.take()
        if lost := self.metrics.dropped - self._lost:
            self._lost += lost
            log.warning("%d metric samples are lost: between two pings a worker keeps %d", lost, self.metrics.LIMIT)
        return [MetricSample(s.name, s.kind, s.unit, s.value, list(s.labels), s.request_id, s.counts) for s in taken]
