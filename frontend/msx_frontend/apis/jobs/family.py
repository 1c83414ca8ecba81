"""`/jobs`: requests that were deferred, how they stand, and their replies."""

from __future__ import annotations

from collections.abc import Iterator

from msx_frontend.apis.jobs.answers import JobAnswers, JobStatus, RemovedJob
from msx_frontend.deferred.runner import DeferredJobs
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Route

__all__ = ["jobs_api"]


def jobs_api(runner: DeferredJobs | None) -> Family:
    """`runner` is None where requests are not deferred."""
    return Family("jobs", tuple(_routes(JobAnswers(runner))), own_failure)


def _routes(answers: JobAnswers) -> Iterator[Route]:
    yield Route(
        "GET",
        "/jobs/{id}",
        answers.show,
        summary="How a job stands",
        queries=(("wait", "number"),),
        response_schema=JobStatus,
    )
    yield Route(
        "DELETE", "/jobs/{id}", answers.remove, summary="Cancel a job, or forget it", response_schema=RemovedJob
    )
    yield Route(
        "GET",
        "/jobs/{id}/result",
        answers.result,
        summary="The reply of a job, as it would have been",
        statuses=((200, "The reply, whose status may be another one"), (202, "The job has not ended")),
    )
    yield Route("GET", "/jobs/{id}/events", answers.events, summary="The events of a job's stream")
