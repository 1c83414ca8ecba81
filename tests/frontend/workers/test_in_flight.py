"""Which jobs a worker holds, and how long each of its batches took."""

from __future__ import annotations

import math

import pytest

from msx_frontend.job import Job
from msx_frontend.workers.in_flight import MOST_KINDS, InFlight
from tests.frontend.jobs import make_job


def jobs_of(count: int) -> list[Job]:
    return [make_job(f"j{number}") for number in range(count)]


def test_a_batch_is_over_with_its_last_job() -> None:
    held = InFlight()
    held.add(jobs := jobs_of(2), 2, 10.0, at_once=False)
    assert held.finish([jobs[1].number], 11.0) == []
    assert held.finish([jobs[0].number], 13.0) == [(2, 3.0)]
    assert (len(held.open), len(held.batches)) == (0, 0)


def test_the_next_batch_begins_when_the_one_before_it_is_over() -> None:
    held = InFlight()
    held.add(first := jobs_of(1), 1, 10.0, at_once=False)
    held.add(second := jobs_of(1), 1, 10.5, at_once=False)
    assert held.finish([first[0].number], 12.0) == [(1, 2.0)]
    assert held.finish([second[0].number], 15.0) == [(1, 3.0)]


def test_batches_that_end_together_share_the_time() -> None:
    held = InFlight()
    sent = [jobs_of(count) for count in (3, 2, 1, 2)]
    for jobs in sent:
        held.add(jobs, len(jobs), 10.0, at_once=False)
    over = held.finish([job.number for jobs in sent[:3] for job in jobs], 16.0)
    assert over == [(3, 2.0), (2, 2.0), (1, 2.0)]
    assert held.finish([job.number for job in sent[3]], 17.0) == [(2, 1.0)]


def test_requests_that_run_at_once_have_their_own_time() -> None:
    held = InFlight()
    (one, two) = jobs_of(2)
    held.add([one], 1, 10.0, at_once=True)
    held.add([two], 1, 11.0, at_once=True)
    assert held.finish([two.number, one.number], 14.0) == [(1, 3.0), (1, 4.0)]


def test_jobs_are_divided_into_batches_which_run_one_after_the_other() -> None:
    held, jobs = InFlight(), jobs_of(5)
    held.add(jobs, 2, 10.0, at_once=False)
    assert [(batch.size, batch.began) for batch in held.batches] == [(2, 10.0), (2, 0.0), (1, 0.0)]
    assert held.finish([1, 2], 11.0) == [(2, 1.0)]
    assert held.release() == (jobs[2:4], jobs[4:])


def test_batches_that_were_joined_end_as_one() -> None:
    held, jobs = InFlight(), jobs_of(5)
    for some in (jobs[:1], jobs[1:3], jobs[3:4], jobs[4:]):
        held.add(some, len(some), 10.0, at_once=False, joins=True)
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
        held.add([job], 1, 10.0, at_once=False, joins=True)
    held.join(2, 11.0)
    assert held.release() == (jobs[:2], jobs[2:])


def test_how_long_batches_of_a_method_take() -> None:
    held = InFlight()
    for number, (kind, seconds) in enumerate([("method:a", 1.0), ("method:a", 2.0), ("predict", 9.0)]):
        jobs = [make_job(kind=kind)]
        held.add(jobs, 1, 10.0 + number, at_once=False)
        held.finish([jobs[0].number], 10.0 + number + seconds)
    assert held.typical_seconds("method:a") == pytest.approx(1.1)
    assert held.typical_seconds("method:b") == held.typical_seconds("predict") == math.inf


def test_only_so_many_methods_are_known() -> None:
    held = InFlight()
    for number in range(MOST_KINDS + 1):
        jobs = [make_job(kind=f"method:{number}")]
        held.add(jobs, 1, 10.0, at_once=False)
        held.finish([jobs[0].number], 11.0)
    assert held.typical_seconds("method:0") == math.inf
    assert held.typical_seconds(f"method:{MOST_KINDS}") == 1
