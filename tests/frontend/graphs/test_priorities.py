"""Nodes work on a request in its class."""

from __future__ import annotations

import pytest

from msx_core.priorities import HIGH
from msx_frontend.graphs.execution import Execution
from msx_frontend.graphs.graph import STAGES, Graph
from msx_frontend.graphs.running import Running
from msx_frontend.job import Job
from msx_frontend.job_headers import KeptHeaders
from tests.frontend.graphs.test_edge_sizes import Target
from tests.frontend.jobs import RecordingSink, make_job


class CallSink(RecordingSink):
    priority = HIGH


def by_header() -> Job:
    return make_job(headers=KeptHeaders([("x-msx-priority", "high")]))


def by_metadata() -> Job:
    return make_job(sink=CallSink())


@pytest.mark.parametrize("job", [by_header(), by_metadata()], ids=["header", "metadata"])
def test_every_node(job: Job) -> None:
    first, last = Target(), Target()
    graph = Graph({"first": (), "last": ("first",)}, {"first": ("m/first", first), "last": ("m/last", last)}, STAGES)
    Execution(graph, job, Running(), "method:").begin()
    for target in (first, last):
        assert target.jobs[0].priority == HIGH
        target.answer(b"x")
    assert job.done
