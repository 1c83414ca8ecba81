"""Jobs of services that say what their bodies and replies are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from msx_core.service_errors import BadRequest
from msx_frontend.declared_jobs import DeclaredJobs, declared_jobs
from msx_frontend.job import EXPLAIN, PREDICT, STREAM, Field
from msx_frontend.job_headers import KeptHeaders
from msx_net.http.event_reply import EventReply
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family
from tests.frontend.jobs import RecordingSink, make_job

MSGPACK = "application/msgpack"


class HttpSink(RecordingSink):
    known = SimpleNamespace(family=Family("any", (), torchserve_failure))


@pytest.mark.parametrize("kind", [PREDICT, STREAM, EXPLAIN, "method:", "method:/inference"])
def test_a_body_is_what_the_service_says(kind: str) -> None:
    for stated in ("", None, "text/plain", "application/json"):
        job = make_job(body=b"\x01", kind=kind)
        job.fields = [Field("body", stated, b"\x01")]
        DeclaredJobs("msgpack", None).enter(job)
        assert job.fields == [Field("body", MSGPACK, b"\x01")]


@pytest.mark.parametrize("kind", ["infer", "packed:", "generate", "describe"])
def test_other_protocols_say_it_themselves(kind: str) -> None:
    job = make_job(body=b"\x01", kind=kind, sink=HttpSink())
    DeclaredJobs("msgpack", "events").enter(job)
    assert (job.fields, job.headers) == ([Field("body", None, b"\x01")], [])
    assert isinstance(job.sink, HttpSink)


def test_inputs_over_grpc() -> None:
    job = make_job()
    job.fields = [Field("data", None, b"1")]
    DeclaredJobs("json", None).enter(job)
    assert job.fields == [Field("body", "application/json", b"1")]
    job.fields = several = [Field("a", None, b"1"), Field("b", None, b"2")]
    DeclaredJobs("json", None).enter(job)
    assert job.fields is several


def test_a_form_whatever_its_client_states() -> None:
    job = make_job(body=b"a=1&b=x%20y")
    DeclaredJobs("form", None).enter(job)
    assert job.fields == [Field("a", None, b"1"), Field("b", None, b"x y")]
    with pytest.raises(BadRequest, match="more than 1000 fields"):
        DeclaredJobs("form", None).enter(make_job(body=b"&" * 2000))


@pytest.mark.parametrize("stated", ["application/x-www-form-urlencoded", "Multipart/form-data; boundary=x"])
def test_a_form_with_one_field_of_a_bodys_name(stated: str) -> None:
    job = make_job(headers=[("Content-Type", stated)])
    job.fields = fields = [Field("body", None, b"a=1")]
    DeclaredJobs("form", None).enter(job)
    assert job.fields is fields


def test_parameters_of_the_url_beside_a_body() -> None:
    job = make_job()
    named = Field("model_name", None, b"m")
    job.fields = [Field("body", "", b"1"), named]
    DeclaredJobs("json", None).enter(job)
    assert job.fields == [Field("body", "application/json", b"1"), named]
    job.fields = [Field("body", "text/plain", b"a=1"), named]
    DeclaredJobs("form", None).enter(job)
    assert job.fields == [Field("a", None, b"1"), named]


def test_a_body_is_whole_unless_it_is_a_form() -> None:
    assert [DeclaredJobs(kind, None).takes_whole for kind in ("json", "msgpack", "raw")] == [True] * 3
    assert not DeclaredJobs("form", None).takes_whole
    assert not DeclaredJobs(None, "json").takes_whole


def test_the_worker_is_told_the_reply_by_accept() -> None:
    headers: Any = KeptHeaders([("Accept", "text/html"), ("x-msx-priority", "high")])
    jobs = [make_job(headers=headers) for _ in range(2)]
    for job in jobs:
        DeclaredJobs(None, "msgpack").enter(job)
    assert jobs[0].headers == [("x-msx-priority", "high"), ("accept", MSGPACK)]
    assert jobs[0].headers is jobs[1].headers, "one for all requests with this head"
    assert headers == [("Accept", "text/html"), ("x-msx-priority", "high")]
    job = make_job(headers=[("accept", "text/html")])
    DeclaredJobs(None, "raw").enter(job)
    assert job.headers == [("accept", "application/octet-stream")]


def test_events_are_for_sinks_of_http() -> None:
    job, other = make_job(sink=HttpSink()), make_job()
    for one in (job, other):
        DeclaredJobs(None, "events").enter(one)
    assert isinstance(job.sink, EventReply)
    assert isinstance(other.sink, RecordingSink)


def test_nothing_is_declared() -> None:
    assert declared_jobs(None, None, compression=False) is None
