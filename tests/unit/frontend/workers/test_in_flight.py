"""Which jobs a worker holds, and how long each of its batches took."""

from __future__ import annotations

import pytest
from msgspec import msgpack

from msx_frontend.job import Job, KeptHeaders
from msx_frontend.workers.in_flight import InFlight
from msx_protocol import FrameReader, Predict, ToWorker, decode_headers
from tests.frames import fed
from tests.unit.frontend.jobs import make_job


def jobs_of(count: int) -> list[Job]:
    return [make_job(f"j{number}") for number in range(count)]


def test_a_batch_is_over_with_its_last_job() -> None:
    held = InFlight()
    held.add(jobs := jobs_of(2), 10.0, at_once=False)
    assert held.finish([jobs[1].number], 11.0) == []
    assert held.finish([jobs[0].number], 13.0) == [(2, 3.0)]
    assert (len(held.open), len(held.batches)) == (0, 0)


def test_the_next_batch_begins_when_the_one_before_it_is_over() -> None:
    held = InFlight()
    held.add(first := jobs_of(1), 10.0, at_once=False)
    held.add(second := jobs_of(1), 10.5, at_once=False)
    assert held.finish([first[0].number], 12.0) == [(1, 2.0)]
    assert held.finish([second[0].number], 15.0) == [(1, 3.0)]


def test_batches_that_end_together_share_the_time() -> None:
    held = InFlight()
    sent = [jobs_of(count) for count in (3, 2, 1, 2)]
    for jobs in sent:
        held.add(jobs, 10.0, at_once=False)
    over = held.finish([job.number for jobs in sent[:3] for job in jobs], 16.0)
    assert over == [(3, 2.0), (2, 2.0), (1, 2.0)]
    assert held.finish([job.number for job in sent[3]], 17.0) == [(2, 1.0)]


def test_requests_that_run_at_once_have_their_own_time() -> None:
    held = InFlight()
    (one, two) = jobs_of(2)
    held.add([one], 10.0, at_once=True)
    held.add([two], 11.0, at_once=True)
    assert held.finish([two.number, one.number], 14.0) == [(1, 3.0), (1, 4.0)]


@pytest.mark.parametrize("kind", [list, KeptHeaders])
def test_headers_reach_the_worker(kind: type[list[tuple[str, str]]]) -> None:
    headers = [("x-a", "é"), ("explain", "False")]
    job = make_job()
    job.headers = kind(headers)
    ((message, _),) = fed(FrameReader[ToWorker](ToWorker), b"".join(InFlight().add([job], 1.0, at_once=False)))
    assert isinstance(message, Predict)
    assert decode_headers(message.requests[0].headers) == headers


def test_kept_headers_are_encoded_once() -> None:
    kept = KeptHeaders([("x-a", "1")])
    assert kept.raw is kept.raw
    assert msgpack.decode(kept.raw) == [["x-a", "1"]]


def test_batches_that_were_joined_end_as_one() -> None:
    held, jobs = InFlight(), jobs_of(5)
    for some in (jobs[:1], jobs[1:3], jobs[3:4], jobs[4:]):
        held.add(some, 10.0, at_once=False, joins=True)
    assert (len(held.batches), held.behind) == (4, 4)
    assert held.finish([1], 12.0) == [(1, 2.0)]
    assert held.behind == 2
    held.join(2, 13.0)
    assert (len(held.batches), held.behind) == (2, 1)
    assert [job.started for job in jobs] == [10.0, 12.0, 12.0, 13.0, 10.0]
    assert held.finish([4, 2], 14.0) == []
    assert held.finish([3], 15.0) == [(3, 3.0)]
    assert (jobs[4].started, held.behind) == (15.0, 0)


def test_after_a_crash_the_jobs_that_had_joined_have_begun() -> None:
    held, jobs = InFlight(), jobs_of(3)
    for job in jobs:
        held.add([job], 10.0, at_once=False, joins=True)
    held.join(2, 11.0)
    assert held.release() == (jobs[:2], jobs[2:])
