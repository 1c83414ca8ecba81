"""Requests as frames for a worker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import msgpack

from msx_frontend.job import Field, Job
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.workers.predict_frames import FULL, PredictFrames
from msx_protocol import FrameReader, Predict, ToWorker, decode_headers
from tests.frames import fed
from tests.frontend.jobs import make_job


def jobs_of(count: int, body: bytes = b"x") -> list[Job]:
    jobs = [make_job(f"j{number}") for number in range(count)]
    for number, job in enumerate(jobs):
        job.number, job.fields = number + 1, [Field("body", "", body)]
    return jobs


class Frames(PredictFrames):
    """Keeps what it writes."""

    def __init__(self) -> None:
        super().__init__(lambda *buffers: self.written.extend(buffers))
        self.written: list[bytes | bytearray] = []

    def messages(self) -> list[tuple[ToWorker, bytes]]:
        self.flush()
        written, self.written = self.written, []
        return fed(FrameReader[ToWorker](ToWorker), b"".join(written))


def read(frames: Frames) -> list[tuple[list[int], int, bool, bytes]]:
    """Numbers, batch size, `joins` and body of each frame."""
    found = []
    for message, body in frames.messages():
        assert isinstance(message, Predict)
        found.append(([head.number for head in message.requests], message.size, message.joins, bytes(body)))
    return found


def test_batches_of_one_size_share_a_frame() -> None:
    frames, jobs = Frames(), jobs_of(5)
    frames.add(jobs[:1], 1, 1.0)
    frames.add(jobs[1:], 1, 1.0)
    assert read(frames) == [([1, 2, 3, 4, 5], 1, False, b"xxxxx")]
    assert frames.messages() == []


def test_batches_of_another_size_have_a_frame_of_their_own() -> None:
    frames, jobs = Frames(), jobs_of(5)
    for some in (jobs[:2], jobs[2:4], jobs[4:]):
        frames.add(some, len(some), 1.0)
    assert [frame[:2] for frame in read(frames)] == [([1, 2, 3, 4], 2), ([5], 1)]


@pytest.mark.parametrize("joins", [(True, True), (True, False), (False, True)])
def test_a_batch_that_may_be_joined_has_a_frame_of_its_own(joins: Sequence[bool]) -> None:
    frames = Frames()
    for job, joined in zip(jobs_of(2), joins, strict=True):
        frames.add([job], 1, 1.0, joins=joined)
    assert [(frame[0], frame[2]) for frame in read(frames)] == [([1], joins[0]), ([2], joins[1])]


def test_a_worker_need_not_wait_for_the_bodies_of_many_batches() -> None:
    frames = Frames()
    frames.add(jobs_of(6, b"x" * (FULL // 3)), 2, 1.0)
    assert [frame[0] for frame in read(frames)] == [[1, 2, 3, 4], [5, 6]]


@pytest.mark.parametrize("kind", [list, KeptHeaders])
def test_headers_reach_the_worker(kind: type[list[tuple[str, str]]]) -> None:
    headers = [("x-a", "é"), ("explain", "False")]
    job = make_job()
    job.headers = kind(headers)
    frames = Frames()
    frames.add([job], 1, 1.0)
    ((message, _),) = frames.messages()
    assert isinstance(message, Predict)
    assert decode_headers(message.requests[0].headers) == headers


def test_kept_headers_are_encoded_once() -> None:
    kept = KeptHeaders([("x-a", "1")])
    assert kept.raw is kept.raw
    assert msgpack.decode(kept.raw) == [["x-a", "1"]]
