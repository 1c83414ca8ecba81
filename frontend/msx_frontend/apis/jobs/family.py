"""`/jobs`: requests that were deferred, how they stand, and their replies."""

from __future__ import annotations

from collections.abc import Iterator

from msx_frontend.apis.jobs.answers import JobAnswers, RemovedJob
from msx_frontend.apis.jobs.listing import JobPage
from msx_frontend.apis.jobs.status import JobStatus
from msx_frontend.deferred.runner import DeferredJobs
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Route
from msx_net.keys import Kind

__all__ = ["jobs_api", "jobs_management"]

OF_ALL = "/management/jobs"
"""The path of all keys' jobs; not that of clients, which one listener has beside it where addresses are merged."""
PAGE = (("limit", "integer"), ("after", "string"), ("state", "string"))
"""Query parameters of a list."""


def jobs_api(runner: DeferredJobs | None) -> Family:
    """`runner` is None where requests are not deferred."""
    answers = JobAnswers(runner)
    routes = (
        *_routes(answers, "/jobs", "inference"),
        Route("GET", "/jobs/{id}/events", answers.events, summary="The events of a job's stream"),
    )
    return Family("jobs", routes, own_failure)


def jobs_management(runner: DeferredJobs | None) -> Family:
    """The jobs of all keys, for operators."""
    routes = _routes(JobAnswers(runner, of_all=True), OF_ALL, "management")
    return Family("jobs management", tuple(routes), own_failure, listener="management")


def _routes(answers: JobAnswers, path: str, key: Kind) -> Iterator[Route]:
    yield Route(
        "GET", path, answers.list, key=key, summary="Jobs, the newest first", queries=PAGE, response_schema=JobPage
    )
    yield Route(
        "GET",
        f"{path}/{{id}}",
        answers.show,
        key=key,
        summary="How a job stands",
        queries=(("wait", "number"),),
        response_schema=JobStatus,
    )
    yield Route(
        "DELETE",
        f"{path}/{{id}}",
        answers.remove,
        key=key,
        summary="Cancel a job, or forget it",
        response_schema=RemovedJob,
    )
    yield Route(
        "GET",
        f"{path}/{{id}}/result",
        answers.result,
        key=key,
        summary="The reply of a job, as it would have been",
        statuses=((200, "The reply, whose status may be another one"), (202, "The job has not ended")),
    )
