"""The requests of one turn of the loop as frames for a worker."""

from collections.abc import Callable, Sequence

from msx_core.references import Key
from msx_frontend.job import TORCHSERVES, Job
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.shared_value import StageJob
from msx_frontend.workers.segments.port import SegmentPort
from msx_protocol import LARGE, FieldRow, PredictRows, RequestRow, encode_frame_parts, encode_headers

FULL = LARGE // 2
"""Bytes of the bodies in a frame to which no further batch is added: the worker begins when all of it is there."""


class PredictFrames:
    """Batches of one size share a frame: for short calls a frame of its own costs more than the request in it."""

    def __init__(self, write: Callable[..., None]) -> None:
        """`write` takes the buffers of frames."""
        self._write = write
        self._frames: list[bytes | bytearray] = []
        self._heads: list[RequestRow] = []
        self._bodies: list[bytes] = []
        self._bytes = 0
        self._size = 0
        self._joins = False
        self._segments: dict[int, list[Key]] = {}
        self.port: SegmentPort | None = None
        """Where shared memory that a stage's jobs refer to is given to the worker."""
        self.in_frames = False
        """Replies travel in frames: another frontend is to take the worker over."""

    def add(self, jobs: Sequence[Job], size: int, now: float, *, joins: bool = False) -> None:
        """Batches of `size` of these jobs, whose numbers are given; `now` is a `time.monotonic()` instant."""
        if self._heads and (joins or self._joins or size != self._size):
            self._end_frame()
        self._size, self._joins = size, joins
        for at, job in enumerate(jobs):
            if self._bytes >= FULL and at % size == 0:
                self._end_frame()
            fields: list[FieldRow] = []
            for field in job.fields:
                data = field.data
                self._bodies.append(data)
                self._bytes += len(data)
                fields.append((field.name, field.content_type, len(data)))
            self._heads.append(_head(job, fields, now))
            if type(job) is StageJob and job.shared and self.port is not None:
                self._segments[job.number] = self.port.give(job.shared, job.number)

    def flush(self) -> None:
        """All frames of one turn of the loop leave in one write."""
        if self._heads:
            self._end_frame()
        if frames := self._frames:
            self._frames = []
            self._write(*frames)

    def _end_frame(self) -> None:
        message = PredictRows(self._heads, self._joins, self._size, self._segments, self.in_frames)
        self._frames += encode_frame_parts(message, self._bodies)
        self._heads, self._bodies, self._bytes = [], [], 0
        if self._segments:
            self._segments = {}


def _head(job: Job, fields: list[FieldRow], now: float) -> RequestRow:
    timeout = None if job.deadline is None else max(job.deadline - now, 0.0)
    headers = job.headers.raw if isinstance(job.headers, KeptHeaders) else encode_headers(job.headers)
    return job.number, job.id, headers, fields, timeout, "" if job.kind in TORCHSERVES else job.kind
