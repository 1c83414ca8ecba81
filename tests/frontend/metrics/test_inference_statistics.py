from __future__ import annotations

import json
import time

import pytest

from msx_frontend.job import DESCRIBE
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.metrics.handed_counts import ToldCounts
from msx_frontend.metrics.inference_statistics import Total
from tests.frontend.jobs import make_job


def test_what_is_counted() -> None:
    model = ModelMetrics(ServerMetrics(), "m", "1.0")
    good, bad, described, never_ran = make_job(), make_job(), make_job(kind=DESCRIBE), make_job()
    now = time.monotonic()
    for job, status in ((good, 200), (bad, 503), (described, 200), (never_ran, 503)):
        job.enqueued, job.started, job.status = now - 500, now - 300, status
        never_ran.started = 0.0
        model.jobs_ended([job])
    seen = model.statistics
    assert (seen.success.count, seen.fail.count, seen.queue.count, seen.compute.count) == (1, 2, 1, 1)
    seconds = seen.success.seconds, seen.fail.seconds, seen.queue.seconds, seen.compute.seconds
    assert seconds == pytest.approx((500, 1000, 200, 300), abs=60)
    assert seen.last == pytest.approx(time.time(), abs=60)


def test_batches() -> None:
    model = ModelMetrics(ServerMetrics(), "m", "1.0")
    model.batch(3, 0.5, 2)
    model.batch(1, 0.5)
    seen = model.statistics.batches
    assert {size: (total.count, total.seconds) for size, total in seen.items()} == {3: (2, 1.0), 1: (1, 0.5)}


def test_nothing_yet() -> None:
    seen = ModelMetrics(ServerMetrics(), "m", "1.0").statistics
    assert (seen.last, seen.success.count, seen.batches) == (0, 0, {})


def test_another_server_goes_on_with_them() -> None:
    before, after = ServerMetrics(), ServerMetrics()
    told, old = ToldCounts(before), ModelMetrics(before, "m", "1.0")

    def busy(model: ModelMetrics) -> None:
        for status in (200, 503):
            job = make_job()
            job.enqueued, job.started, job.status = job.enqueued - 5, job.enqueued - 3, status
            model.jobs_ended([job])
        model.batch(2, 0.5)

    def tell() -> None:
        while message := told.next():
            after.go_on_with(json.loads(json.dumps(message)))

    busy(old)
    tell()
    new = ModelMetrics(after, "m", "1.0")
    assert new.statistics.counts == pytest.approx(old.statistics.counts)
    assert new.statistics.batches == old.statistics.batches == {2: Total(1, 0.5)}
    busy(new)
    last = new.statistics.last
    busy(old)
    tell()
    seen = new.statistics
    assert (seen.success.count, seen.fail.count, seen.batches) == (3, 3, {2: Total(3, 1.5)})
    assert last <= seen.last <= time.time()
    again = ModelMetrics(after, "m", "1.0").statistics
    assert (again.success.count, again.last) == (0, 0)


@pytest.mark.parametrize("told_later", [False, True])
def test_those_of_a_version_that_was_removed_end(told_later: bool) -> None:
    """One that is registered by its name later begins anew, also in another server."""
    before, after = ServerMetrics(), ServerMetrics()
    told, old = ToldCounts(before), ModelMetrics(before, "m", "1.0")
    old.batch(2, 0.5)
    if told_later:
        ModelMetrics(after, "m", "1.0").close()
    else:
        old.close()
    after.go_on_with(json.loads(json.dumps(told.next())))
    assert ModelMetrics(after, "m", "1.0").statistics.batches == {}


def test_one_that_is_replaced_ends_after_the_next_one_has_begun() -> None:
    server = ServerMetrics()
    old, new = ModelMetrics(server, "m", "1.0"), ModelMetrics(server, "m", "1.0")
    new.batch(2, 0.5)
    old.close()
    assert new.statistics.batches == {2: Total(1, 0.5)}
    assert dict(server.statistics.counts())["m", "1.0", "2"] == [1, 0.5]
