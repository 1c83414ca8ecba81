"""An API family: routes over HTTP, the jobs that they submit, and where their answers go."""

from __future__ import annotations

from msx_core.replies.sink import Sink
from msx_core.service_errors import ServiceError
from msx_frontend.job import Job
from msx_net.http.family import Failure, Family, JobRoute, JobTemplate, Names, Reply, ReplySink, Route
from msx_net.http.head import Head
from msx_net.http.request import Request

__all__ = [
    "Failure",
    "Family",
    "Head",
    "Job",
    "JobRoute",
    "JobTemplate",
    "Names",
    "Reply",
    "ReplySink",
    "Request",
    "Route",
    "ServiceError",
    "Sink",
]
