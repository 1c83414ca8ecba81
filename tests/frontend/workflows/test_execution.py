"""A request on its way through a graph, over models that only pretend."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.service_errors import (
    DeadlineExceeded,
    HandlerFailed,
    RequestCancelled,
    ServiceError,
    ServiceUnavailable,
    WorkerDied,
)
from msx_core.workflow_spec import parse_workflow_spec
from msx_frontend.job import Field, Job
from msx_frontend.workflows.workflow import Workflow
from tests.loops import run
from tests.phrases import worker_died
from tests.retry import told_wait

Behaviour = Callable[[Job], None]


class FakeVersion:
    """Each job goes to the next behaviour, the last of them to all that follow."""

    def __init__(self, name: str, *behaviours: Behaviour) -> None:
        self.source = SimpleNamespace(name=f"w__{name}", version="1.0")
        self.queue = self
        self.behaviours = list(behaviours)
        self.jobs: list[Job] = []
        self.counted: list[int] = []

    def submit(self, job: Job) -> None:
        behaviour = self.behaviours[min(len(self.jobs), len(self.behaviours) - 1)]
        self.jobs.append(job)
        behaviour(job)

    def refused(self, status: int) -> None:
        self.counted.append(status)


def answers(*chunks: bytes, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Behaviour:
    def behave(job: Job) -> None:
        job.sink.start(status, "", list(headers))
        for chunk in chunks:
            job.sink.chunk(chunk)
        job.finish(status)

    return behave


def fails(error: ServiceError) -> Behaviour:
    return lambda job: job.fail(error)


def refuses(error: ServiceError) -> Behaviour:
    def behave(job: Job) -> None:
        raise error

    return behave


def waits(job: Job) -> None:
    """No node answers."""


def bug(job: Job) -> None:
    raise ZeroDivisionError


def workflow(graph: str, retries: int = 0, **versions: FakeVersion) -> Workflow:
    models = {name: {"url": f"{name}.mar"} for name in versions}
    spec, _ = parse_workflow_spec({"models": {"retry-attempts": retries, **models}, "dag": _graph(graph)})
    return Workflow("w", "w.war", "", spec, cast(Any, versions))


def _graph(text: str) -> dict[str, list[str]]:
    """`a>b,c b>d`"""
    return {
        node: [one for one in row.split(",") if one] for node, _, row in (part.partition(">") for part in text.split())
    }


class NodeAnswer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes


def asked(flow: Workflow, limit: int = 1000) -> tuple[Job, ReplyBuffer]:
    flow.limit = limit
    reply = ReplyBuffer()
    job = reply.job = Job("id", "w", None, [Field("body", "text/plain", b"x")], [("a", "b")], reply)
    flow.submit(job)
    return job, reply


def answer_of(flow: Workflow, limit: int = 1000) -> NodeAnswer:
    async def call() -> NodeAnswer:
        _, reply = asked(flow, limit)
        head = await reply.head()
        return NodeAnswer(head.status, head.headers, b"".join([chunk async for chunk in reply]))

    try:
        return run(call())
    finally:
        assert not flow.running


def error_of(flow: Workflow, limit: int = 1000) -> ServiceError:
    with pytest.raises(ServiceError) as raised:
        answer_of(flow, limit)
    return raised.value


def test_an_answer_in_pieces_is_one_input() -> None:
    a, b = FakeVersion("a", answers(b"1", b"2")), FakeVersion("b", answers(b"3"))
    assert answer_of(workflow("a>b", a=a, b=b)) == NodeAnswer(200, [("content-type", "application/json")], b"3")
    assert a.jobs[0].fields == [Field("body", "text/plain", b"x")]
    assert b.jobs[0].fields == [Field("body", None, b"12")]
    assert [job.id for job in (*a.jobs, *b.jobs)] == ["id-a", "id-b"]
    assert b.jobs[0].headers == [("a", "b")]


def test_an_answer_that_is_too_large_ends_it() -> None:
    a = FakeVersion("a", answers(b"123", b"456"))
    error = error_of(workflow("a>b", a=a, b=FakeVersion("b", waits)), limit=5)
    assert (error.status, error.message) == (
        500,
        "Error executing a: its answer is larger than max_response_size (5 bytes).",
    )


@pytest.mark.parametrize(
    "first", [fails(WorkerDied("Signal 9.")), refuses(ServiceUnavailable("full")), answers(status=502)]
)
def test_what_may_pass_is_tried_again(first: Behaviour) -> None:
    a = FakeVersion("a", first, first, answers(b"ok"))
    assert answer_of(workflow("a>", retries=2, a=a)).body == b"ok"
    assert [job.id for job in a.jobs] == ["id-a", "id-a-2", "id-a-3"]


@pytest.mark.parametrize(
    "first", [fails(HandlerFailed(422, "no")), refuses(HandlerFailed(404, "no")), answers(b"no", status=499)]
)
def test_what_will_not_pass_is_not(first: Behaviour) -> None:
    a = FakeVersion("a", first, answers(b"ok"))
    flow = workflow("a>", retries=2, a=a)
    with contextlib.suppress(ServiceError):
        assert answer_of(flow).status == 499
    assert len(a.jobs) == 1


def test_the_last_attempt_counts() -> None:
    a = FakeVersion("a", fails(ServiceUnavailable("first")), fails(WorkerDied("last")))
    error = error_of(workflow("a>", retries=1, a=a))
    assert (error.status, error.message) == (500, f"Error executing a: {worker_died('last')}")
    assert error.headers == (("x-workflow-node", "a"),)


def test_a_refusal_is_counted_like_any_other() -> None:
    a = FakeVersion("a", refuses(ServiceUnavailable("full")))
    error = error_of(workflow("a>", a=a))
    assert told_wait(dict(error.headers))
    assert error.headers[-1] == ("x-workflow-node", "a")
    assert a.counted == [503]


def test_the_models_own_time_limit_is_told_as_such() -> None:
    def own_limit(job: Job) -> None:
        job.deadline = 0.0
        job.cancel(DeadlineExceeded("The request had 1 s (clientTimeoutInMills)."))

    error = error_of(workflow("a>", a=FakeVersion("a", own_limit)))
    assert error.message == "Error executing a: The request had 1 s (clientTimeoutInMills)."


def test_a_time_limit_of_the_node() -> None:
    def late(job: Job) -> None:
        job.cancel(DeadlineExceeded("late"))

    error = error_of(workflow("a>", a=FakeVersion("a", late)))
    assert (error.status, error.message) == (
        504,
        "Error executing a: it has not answered within its timeout-ms (10000).",
    )


def test_the_first_failure_ends_the_other_branches() -> None:
    a, slow = FakeVersion("a", answers(b"1")), FakeVersion("slow", waits)
    bad, end = FakeVersion("bad", fails(HandlerFailed(400, "no"))), FakeVersion("end", waits)
    error = error_of(workflow("a>slow,bad slow>end bad>end", a=a, slow=slow, bad=bad, end=end))
    assert error.message == "Error executing bad: no"
    assert [job.cancelled for job in slow.jobs] == [True]
    assert end.jobs == []


def test_a_status_that_the_handler_set_ends_it_with_the_handlers_body() -> None:
    a = FakeVersion("a", answers(b"teapot", status=418, headers=(("content-type", "text/plain"),)))
    answer = answer_of(workflow("a>b", a=a, b=FakeVersion("b", waits)))
    assert answer == NodeAnswer(418, [("content-type", "text/plain"), ("x-workflow-node", "a")], b"teapot")


def test_a_bug_in_a_later_node_ends_the_request() -> None:
    a, bad, other = FakeVersion("a", answers(b"1")), FakeVersion("bad", bug), FakeVersion("other", waits)
    error = error_of(workflow("a>bad,other", a=a, bad=bad, other=other))
    assert (error.status, error.message) == (500, "The server could not pass the request on.")
    assert other.jobs == [] or other.jobs[0].cancelled


def test_several_leaves_are_json() -> None:
    a, b, c = (FakeVersion(name, answers(body)) for name, body in (("a", b"1"), ("b", b"[1]"), ("c", b"NaN")))
    answer = answer_of(workflow("a>b,c", a=a, b=b, c=c))
    assert answer.body.split() == b'{ "b": [ 1 ], "c": "NaN" }'.split()


@pytest.mark.parametrize("error", [None, ServiceUnavailable("the end")])
def test_cancel_ends_all_that_runs(error: ServiceError | None) -> None:
    a, b, c = FakeVersion("a", answers(b"1")), FakeVersion("b", waits), FakeVersion("c", waits)
    flow = workflow("a>b,c", retries=3, a=a, b=b, c=c)

    async def call() -> None:
        job, reply = asked(flow)
        assert [one.job for one in flow.running] == [job]
        waiting = asyncio.ensure_future(flow.running.quiet(30))
        await asyncio.sleep(0)
        job.cancel(error)
        job.cancel(DeadlineExceeded("too late"))
        with pytest.raises(type(error or RequestCancelled())):
            await reply.head()
        assert await waiting

    run(call())
    assert [job.cancelled for job in (*b.jobs, *c.jobs)] == [True, True]


def test_the_callers_end_ends_all_that_runs() -> None:
    a = FakeVersion("a", waits)
    flow = workflow("a>", a=a)

    async def call() -> None:
        _, reply = asked(flow)
        reply.close()

    run(call())
    assert a.jobs[0].cancelled
    assert not flow.running
