from __future__ import annotations

import pytest

from msx_frontend.job import DESCRIBE
from msx_frontend.statistics import InferenceStatistics
from tests.unit.frontend.jobs import make_job


def test_what_is_counted() -> None:
    seen = InferenceStatistics()
    good, bad, described = make_job(), make_job(), make_job(kind=DESCRIBE)
    for job, status in ((good, 200), (bad, 503), (described, 200)):
        job.enqueued, job.started, job.status = 10.0, 12.0, status
        seen.job_ended(job, 15.0)
    assert (seen.success.count, seen.fail.count, seen.queue.count, seen.compute.count) == (1, 1, 1, 1)
    assert (seen.success.seconds, seen.queue.seconds, seen.compute.seconds) == pytest.approx((5, 2, 3))
    assert seen.last > 0
    seen.batch(3, 0.5)
    seen.batch(3, 0.5)
    assert (seen.batches[3].count, seen.batches[3].seconds) == (2, 1.0)
