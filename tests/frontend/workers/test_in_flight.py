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
    held.add(jobs := jobs_of(2), 2, 10.0)
    assert held.finish([jobs[1].number], 11.0) == []
    assert held.finish([jobs[0].number], 13.0) == [(2, 3.0, 3.0)]
    assert (len(held.open), len(held.batches)) == (0, 0)


def test_the_next_batch_begins_when_the_one_before_it_is_over() -> None:
    held = InFlight()
    held.add(first := jobs_of(1), 1, 10.0)
    held.add(second := jobs_of(1), 1, 10.5)
    assert held.finish([first[0].number], 12.0) == [(1, 2.0, 2.0)]
    assert held.finish([second[0].number], 15.0) == [(1, 3.0, 3.0)]


def test_batches_that_end_together_share_the_time() -> None:
    held = InFlight()
    sent = [jobs_of(count) for count in (3, 2, 1, 2)]
    for jobs in sent:
        held.add(jobs, len(jobs), 10.0)
    over = held.finish([job.number for jobs in sent[:3] for job in jobs], 16.0)
    assert over == [(3, 2.0, 2.0), (2, 2.0, 2.0), (1, 2.0, 2.0)]
    assert held.finish([job.number for job in sent[3]], 17.0) == [(2, 1.0, 1.0)]


def test_requests_that_run_at_once_have_their_own_time() -> None:
    held = InFlight()
    (one, two) = jobs_of(2)
    held.at_once = True
    held.add([one], 1, 10.0)
    held.add([two], 1, 11.0)
    assert held.finish([two.number, one.number], 14.0) == [(1, 3.0, 3.0), (1, 4.0, 4.0)]


def test_jobs_are_divided_into_batches_which_run_one_after_the_other() -> None:
    held, jobs = InFlight(), jobs_of(5)
    held.add(jobs, 2, 10.0)
    assert [(batch.size, batch.began) for batch in held.batches] == [(2, 10.0), (2, 0.0), (1, 0.0)]
    assert held.finish([1, 2], 11.0) == [(2, 1.0, 1.0)]
    assert held.release() == (jobs[2:4], jobs[4:])


def test_batches_that_were_joined_end_as_one() -> None:
    held, jobs = InFlight(), jobs_of(5)
    for some in (jobs[:1], jobs[1:3], jobs[3:4], jobs[4:]):
        held.add(some, len(some), 10.0, joins=True)
    assert (len(held.batches), held.behind) == (4, 4)
    assert held.finish([1], 12.0) == [(1, 2.0, 2.0)]
    assert held.behind == 2
    held.join(2, 2, 13.0)
    assert (len(held.batches), held.behind) == (2, 1)
    assert [job.started for job in jobs] == [10.0, 12.0, 12.0, 13.0, 10.0]
    assert held.finish([4, 2], 14.0) == []
    assert held.finish([3], 15.0) == [(3, 3.0, 3.0)]
    assert (jobs[4].started, held.behind) == (15.0, 0)


def test_after_a_crash_the_jobs_that_had_joined_have_begun() -> None:
    held, jobs = InFlight(), jobs_of(3)
    for job in jobs:
        held.add([job], 1, 10.0, joins=True)
    held.join(1, 2, 11.0)
    assert held.release() == (jobs[:2], jobs[2:])


def test_how_long_batches_of_a_method_take() -> None:
    held = InFlight()
    for number, (kind, seconds) in enumerate([("method:a", 1.0), ("method:a", 2.0), ("predict", 9.0)]):
        jobs = [make_job(kind=kind)]
        held.add(jobs, 1, 10.0 + number)
        held.finish([jobs[0].number], 10.0 + number + seconds)
    assert held.typical_seconds("method:a") == pytest.approx(1.1)
    assert held.typical_seconds("method:b") == held.typical_seconds("predict") == math.inf


def test_only_so_many_methods_are_known() -> None:
    held = InFlight()
    for number in range(MOST_KINDS + 1):
        jobs = [make_job(kind=f"method:{number}")]
        held.add(jobs, 1, 10.0 + number)
        held.finish([jobs[0].number], 11.0 + number)
    assert held.typical_seconds("method:0") == math.inf
    assert held.typical_seconds(f"method:{MOST_KINDS}") == 1


def overlapping(*sizes: int) -> tuple[InFlight, list[list[Job]]]:
    """Batches of these sizes, all sent at 10.0, of which the worker has not yet said that it has begun them."""
    held, batches = InFlight(), [jobs_of(size) for size in sizes]
    for jobs in batches:
        held.add(jobs, len(jobs), 10.0)
    return held, batches


def test_up_to_three_batches_have_begun_where_they_overlap() -> None:
    """After a crash all of them have failed."""
    held, (last, now, next_, behind) = overlapping(2, 3, 4, 5)
    assert held.behind == 12
    for jobs, instant in ((last, 10.1), (now, 11.0), (next_, 12.0)):
        held.join(jobs[0].number, 1, instant)
    assert [batch.began for batch in held.batches] == [10.0, 11.0, 12.0, 0.0]
    assert held.behind == 5
    assert held.release() == ([*last, *now, *next_], behind)


def test_a_batch_that_overlaps_has_the_time_of_the_device_since_the_batch_before_it() -> None:
    held, (first, second, third) = overlapping(1, 2, 3)
    held.join(second[0].number, 1, 11.0)
    assert held.finish([job.number for job in first], 14.0) == [(1, 4.0, 4.0)]
    held.join(third[0].number, 1, 14.5)
    assert held.finish([job.number for job in second], 16.0) == [(2, 2.0, 5.0)]
    held.add(late := jobs_of(1), 1, 16.0)
    assert held.finish([job.number for job in third], 18.0) == [(3, 2.0, 3.5)]
    assert held.finish([late[0].number], 19.0) == [(1, 1.0, 1.0)], "it began when the one before it was over"


def test_batches_that_overlap_and_end_together_share_the_time() -> None:
    held, (first, second) = overlapping(1, 1)
    held.join(2, 1, 11.0)
    assert held.finish([first[0].number, second[0].number], 14.0) == [(1, 2.0, 2.0), (1, 2.0, 2.0)]


def test_requests_join_the_batch_that_the_worker_begins() -> None:
    """Not the oldest: that one is still in the worker."""
    held, jobs = InFlight(), jobs_of(6)
    for some in (jobs[:2], jobs[2:3], jobs[3:5], jobs[5:]):
        held.add(some, len(some), 10.0, joins=True)
    held.join(jobs[2].number, 2, 12.0)
    assert [(batch.size, batch.began) for batch in held.batches] == [(2, 10.0), (3, 12.0), (1, 0.0)]
    assert [job.started for job in jobs] == [10.0, 10.0, 12.0, 12.0, 12.0, 10.0]
    assert held.behind == 1
    assert held.finish([1, 2], 13.0) == [(2, 3.0, 3.0)]
    assert held.finish([3, 4, 5], 15.0) == [(3, 2.0, 3.0)]


@pytest.mark.parametrize(
    ("first", "batches", "sizes"),
    [
        (0, 2, [1, 1, 1, 2]),
        (99, 2, [1, 1, 1, 2]),
        (1, 0, [1, 1, 1, 2]),
        (1, -1, [1, 1, 1, 2]),
        (1, (1 << 64) - 1, [3, 2]),
        (4, 2, [1, 1, 1, 2]),
        (3, 2, [1, 1, 1, 2]),
    ],
)
def test_wrong_words_of_a_worker_break_nothing(first: int, batches: int, sizes: list[int]) -> None:
    """A number that it does not hold, batches that are not there, or that were not sent to be joined."""
    held, jobs = InFlight(), jobs_of(5)
    for job in jobs[:3]:
        held.add([job], 1, 10.0, joins=True)
    held.add(jobs[3:], 2, 10.0)
    held.join(first, batches, 11.0)
    held.join(first, batches, 11.0)
    assert [batch.size for batch in held.batches] == sizes
    assert sum(size for size, _, _ in held.finish(range(1, 6), 12.0)) == 5
    assert (len(held.open), len(held.batches)) == (0, 0)


def test_batches_behind_one_whose_clients_are_slow_are_held_up_with_it() -> None:
    """Else a worker that overlaps would be ended as one that hangs."""
    held, jobs = InFlight(), jobs_of(3)
    for job in jobs:
        held.add([job], 1, 10.0)
    held.join(jobs[1].number, 1, 11.0)
    assert (held.begun, held.foremost) == (jobs[:2], jobs[:1])
    held.finish([jobs[0].number], 12.0)
    assert held.foremost == jobs[1:2]
    held.at_once = True
    assert held.foremost == held.begun


def test_numbers_go_on_after_those_of_another_server() -> None:
    held = InFlight()
    held.go_on_after(7)
    held.add(jobs := jobs_of(1), 1, 10.0)
    assert jobs[0].number == 8


def test_another_frontend_goes_on_with_the_batches() -> None:
    """The first has begun, with two of its three jobs left; the second waits behind it, and may be joined."""
    held, jobs = InFlight(), jobs_of(4)
    held.add(jobs[:3], 3, 10.0)
    held.add(jobs[3:], 1, 11.0, joins=True)
    held.finish([1], 12.0)
    jobs[1].status, jobs[1].first_chunk = 200, 11.5
    first, second = held.handed(13.0)
    assert (first.size, first.age, first.joins, first.jobs) == (3, 3.0, False, [(2, 200), (3, 0)])
    assert (second.size, second.age, second.joins, second.jobs) == (1, None, True, [(4, 0)])
    other = InFlight()
    other.go_on_after(held.number + 100)
    other.enter(jobs[1:3], 3, 100.0, joins=False)
    other.enter(jobs[3:], 1, 0.0, joins=True)
    other.add(own := jobs_of(1), 1, 101.0)
    assert own[0].number == 105
    assert other.finish([2], 102.0) == []
    assert other.finish([3], 103.0) == [(3, 3.0, 3.0)]
    assert other.finish([4], 105.0) == [(1, 2.0, 2.0)]
