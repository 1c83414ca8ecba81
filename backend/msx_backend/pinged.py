"""The worker, as a ping of the server finds it."""

import logging

from msx_backend.loop_watch import LoopWatch
from msx_backend.parallel.reports import collectives
from msx_backend.replies import ReplyWriter
from msx_backend.segments.space import SegmentSpace
from msx_core.metrics.kinds import GAUGE
from msx_core.metrics.samples import Sample
from msx_protocol import MetricInfo, MetricSample, Pong
from msx_protocol.heartbeat import FIRST
from msx_sdk.metrics import Metrics

log = logging.getLogger("msx.worker")

Labels = tuple[tuple[str, str], ...]
MOST_GAUGES = 1000


class PingedWorker:
    """Answers pings on the control thread, about once a second. `parallel`: it is a rank of a group."""

    def __init__(self, replies: ReplyWriter, segments: SegmentSpace | None, *, parallel: bool) -> None:
        self._replies, self._segments, self._parallel = replies, segments, parallel
        self.metrics: Metrics | None = None
        """None until the handler is imported."""
        self.watch: LoopWatch | None = None
        """Watch over the loop of an async handler."""
        self._lost = 0
        self._gauges: dict[tuple[str, Labels], MetricSample] = {}
        """Last value of each gauge, for another frontend: most are set once."""

    def pong(self, sequence: int, seconds: float) -> Pong:
        """Answer a ping. The handler's call has run for `seconds`."""
        self._replies.send_early_heads()
        if self._segments is not None:
            self._return(self._segments)
        imported = self.metrics is not None  # before, the module that counts may be half imported
        counts = collectives() if self._parallel and imported else {}
        known = [*self._gauges.values()] if sequence == FIRST else []
        samples = known + self._samples()  # before the forms, of which one may be newer than its first sample
        return Pong(sequence, self._replies.progress, seconds, samples, counts, self._forms())

    def tell_again(self) -> None:
        """Describe all metrics with the next pong: another frontend asks."""
        if self.metrics is not None:
            self.metrics.descriptors.tell_again()

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
        return [self._sample(one) for one in taken]

    def _sample(self, one: Sample) -> MetricSample:
        made = MetricSample(one.name, one.kind, one.unit, one.value, [*one.labels], one.request_id, one.counts)
        key = one.name, one.labels
        if one.kind == GAUGE and (key in self._gauges or len(self._gauges) < MOST_GAUGES):
            self._gauges[key] = made
        return made
