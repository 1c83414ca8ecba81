"""Predictions through ASGI and directly, over HTTP/1.1 and HTTP/2: between a client and the jobs of a registry."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.held_bytes import HeldBytes
from msx_core.service_errors import DeadlineExceeded, HandlerFailed, RequestCancelled, ServiceUnavailable, WorkerDied
from msx_frontend.job import EXPLAIN, PREDICT, Field, Job
from msx_net.http.router import Router
from msx_net.http.wire import StreamBroken
from tests.frontend.net.predictions import FakeRegistry, answer, begin_answer, predictions
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, ask
from tests.net.http.direct_client import begin_direct
from tests.net.http.exchanges import exchange_of
from tests.net.http.v2.client import begin_http2
from tests.phrases import worker_died
from tests.retry import told_wait


@pytest.fixture(autouse=True, params=["http/1.1", "http/2"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "way", request.param)


class Bench:
    """The endpoint behind its edge, as it is served."""

    way = "http/1.1"

    def __init__(self, *, limit: int = 1000, only_model: str | None = None, most_held: int = 1 << 30) -> None:
        self.registry = FakeRegistry()
        self.log = FakeAccessLog()
        self.held = HeldBytes(most_held)
        family = predictions(self.registry, only_model)
        self.app = exchange_of(family, log=self.log, limit=limit, held=self.held)

    def begin(self, target: str, body: bytes | None = b"", **headers: str) -> Exchange:
        return (begin_direct if self.way == "http/1.1" else begin_http2)(self.app, "POST", target, body, **headers)

    async def ask(self, target: str, body: bytes = b"", **headers: str) -> Exchange:
        """A request that is answered without a job."""
        exchange = await self.begin(target, body, **headers).finish()
        assert self.registry.idle
        return exchange

    async def job(self, target: str, body: bytes = b"", **headers: str) -> Job:
        """The job that a request becomes; it is answered."""
        exchange = self.begin(target, body, **headers)
        job = await self.registry.next_job()
        answer(job)
        await exchange.finish()
        return job


def job_of(target: str, body: bytes = b"", **headers: str) -> Job:
    return run(Bench().job(target, body, **headers))


# -- requests --


@pytest.mark.parametrize(
    ("target", "version", "kind", "url_path"),
    [
        ("/predictions/m", None, PREDICT, ""),
        ("/predictions/m/", None, PREDICT, ""),
        ("/predictions/m/1.0", "1.0", PREDICT, ""),
        ("/predictions/m/1.0/", "1.0", PREDICT, ""),
        ("/predictions/m/1.0/v1/chat", "1.0", PREDICT, "v1/chat"),
        ("/predictions/m/1.0/a%2520b", "1.0", PREDICT, "a%20b"),
        ("/predictions/m:call", None, "method:call", None),
        ("/predictions/m%3Acall", None, "method:call", None),
        ("/predictions/m/1.0:call", "1.0", "method:call", None),
        ("/explanations/m", None, EXPLAIN, ""),
        ("/explanations/m/1.0", "1.0", EXPLAIN, ""),
    ],
)
def test_paths(target: str, version: str | None, kind: str, url_path: str | None) -> None:
    job = job_of(target)
    assert (job.model_name, job.version, job.kind) == ("m", version, kind)
    headers = dict(job.headers)
    assert headers.get("url_path") == url_path
    assert headers["explain"] == str(kind == EXPLAIN)


def test_a_request_as_a_job() -> None:
    job = job_of("/predictions/m", b'{"a": 1}', content_type="application/json", x_request_id="id-1", x_own="é")
    assert job.id == "id-1"
    assert job.fields == [Field("body", "application/json", b'{"a": 1}')]
    assert ("x-own", "é") in job.headers


def test_a_form_as_fields() -> None:
    job = job_of("/predictions/m", b"a=1&b=2", content_type="application/x-www-form-urlencoded")
    assert job.fields == [Field("a", None, b"1"), Field("b", None, b"2")]


def test_invocations() -> None:
    job = job_of("/invocations?model_name=m&k=3", b"x", content_type="text/plain")
    assert (job.model_name, job.kind) == ("m", PREDICT)
    assert job.fields == [Field("body", "text/plain", b"x"), Field("model_name", None, b"m"), Field("k", None, b"3")]


def test_invocations_name_the_model_in_a_form_too() -> None:
    assert job_of("/invocations/", b"model_name=m", content_type="application/x-www-form-urlencoded").model_name == "m"


def test_invocations_of_the_only_model() -> None:
    assert run(Bench(only_model="m").job("/invocations")).model_name == "m"
    exchange = run(Bench().ask("/invocations"))
    assert (exchange.status, exchange.json["message"]) == (400, "Parameter model_name is required.")


@pytest.mark.parametrize("target", ["/models/m/invoke?k=3", "/m/predict?k=3", "/m/1.0/predict?k=3"])
def test_older_routes_take_the_query_as_inputs(target: str) -> None:
    job = job_of(target, b"x")
    assert (job.model_name, job.version) == ("m", "1.0" if "1.0" in target else None)
    assert job.fields == [Field("body", "", b"x"), Field("k", None, b"3")]
    assert dict(job.headers).keys() <= {"host", "content-length"}


@pytest.mark.parametrize(("verb", "kind", "explain"), [("predict", PREDICT, "False"), ("explain", EXPLAIN, "True")])
def test_kserve(verb: str, kind: str, explain: str) -> None:
    job = job_of(f"/v1/models/m:{verb}?ignored=1", b"{}")
    assert (job.model_name, job.version, job.kind) == ("m", None, kind)
    assert job.fields == [Field("body", "", b"{}")]
    assert {name: value for name, value in job.headers if name not in ("host", "content-length")} == {
        "explain": explain
    }


def test_a_model_describes_itself() -> None:
    bench = Bench()
    exchange = run(ask(bench.app, "OPTIONS", "/predictions/m"))
    assert exchange.json["info"]["title"] == "RESTful API for: m"
    assert exchange.headers["content-type"] == "application/json"
    assert run(ask(bench.app, "OPTIONS", "/predictions/nobody")).status == 404
    assert bench.registry.idle


# -- refusals --


@pytest.mark.parametrize(
    ("target", "status", "kind"),
    [
        ("/predictions/nobody", 404, "ModelNotFoundException"),
        ("/predictions/m/9.9", 404, "ModelVersionNotFoundException"),
        ("/explanations/nobody", 404, "ModelNotFoundException"),
        ("/invocations?model_name=nobody", 404, "ModelNotFoundException"),
    ],
)
def test_models_that_are_not_there(target: str, status: int, kind: str) -> None:
    bench = Bench()
    exchange = run(bench.ask(target))
    assert (exchange.status, exchange.json["type"]) == (status, kind)
    assert bench.log.lines == [(f"POST {target}", status)]


def test_malformed_multipart() -> None:
    exchange = run(Bench().ask("/predictions/m", b"--x\r\n", content_type="multipart/form-data; boundary=x"))
    assert (exchange.status, exchange.json["type"]) == (400, "BadRequestException")


def test_a_request_that_is_too_large() -> None:
    bench = Bench(limit=10)
    assert run(bench.ask("/predictions/m", b"x" * 11)).status == 413
    assert run(bench.ask("/predictions/m", content_length="11")).status == 413
    assert run(bench.job("/predictions/m", b"x" * 10)).fields[0].data == b"x" * 10


def test_a_job_that_is_not_taken() -> None:
    bench = Bench()
    bench.registry.refusal = ServiceUnavailable("full")
    exchange = run(bench.ask("/predictions/m"))
    assert (exchange.status, told_wait(exchange.headers) <= 2) == (503, True)


# -- replies --


def replied(*chunks: bytes, **options: Any) -> Exchange:
    async def test() -> Exchange:
        bench = Bench()
        exchange = bench.begin("/predictions/m", x_request_id="id-1")
        answer(await bench.registry.next_job(), *chunks, **options)
        await exchange.finish()
        assert bench.log.lines == [("POST /predictions/m", exchange.status)]
        return exchange

    return run(test())


def test_a_whole_answer_has_its_length() -> None:
    exchange = replied(b"hello world", headers=[("content-type", "text/plain")])
    assert (exchange.status, exchange.chunks) == (200, [b"hello world"])
    assert exchange.headers["content-length"] == "11"
    assert exchange.headers["content-type"] == "text/plain"
    assert exchange.headers["x-request-id"] == "id-1"
    assert not {"ts_stream_next", "x-accel-buffering"} & exchange.headers.keys()


def test_a_stream_that_is_over_at_once_is_one() -> None:
    exchange = replied(b"hello ", b"world")
    joined = [b"hello world"]  # in HTTP/2, where the borders of DATA mean nothing
    assert exchange.chunks == (joined if Bench.way == "http/2" else [b"hello ", b"world"])
    assert exchange.headers["ts_stream_next"] == "true"
    assert exchange.headers["x-accel-buffering"] == "no"


def test_a_handler_may_let_a_proxy_buffer_its_stream() -> None:
    assert replied(b"a", b"b", headers=[("X-Accel-Buffering", "yes")]).headers["x-accel-buffering"] == "yes"


def test_an_empty_answer() -> None:
    exchange = replied()
    assert (exchange.status, exchange.body, exchange.headers["content-length"]) == (200, b"", "0")


def test_a_handlers_own_status_and_headers() -> None:
    exchange = replied(b"x", status=418, headers=[("Content-Length", "99"), ("X-Tea", "pot")])
    assert (exchange.status, exchange.headers["x-tea"], exchange.headers["content-length"]) == (418, "pot", "1")


@pytest.mark.parametrize("header", [("x-a", "1\r\nx-b: 2"), ("x a", "1"), ("x-a", "\u20ac"), ("", "1")])
def test_what_is_not_a_header_is_the_handlers_mistake(header: tuple[str, str]) -> None:
    exchange = replied(b"x", headers=[header])
    assert exchange.status == 500
    assert f"The handler set the header {header[0]!r}" in exchange.json["message"]
    assert "x-b" not in exchange.headers


def test_headers_beyond_the_room_of_a_head_are_the_handlers_mistake() -> None:
    assert replied(b"x", headers=[("x-big", "v" * 61_000), ("x-b", "2")]).status == 200
    exchange = replied(b"x", headers=[("x-b", "2"), ("x-big", "v" * 100_000)])
    assert exchange.status == 500
    assert exchange.json["message"].startswith("The handler set the header 'x-big' of 100009 bytes, and all that")
    assert "x-big" not in exchange.headers


@pytest.mark.parametrize("chunks", [(b"x",), (b"a", b"b"), ()])
def test_the_handlers_phrase(chunks: tuple[bytes, ...]) -> None:
    for status, phrase in ((200, "Fine"), (418, "Th\xe9i\xe8re")):
        exchange = replied(*chunks, status=status, phrase=phrase)
        known = b"" if Bench.way == "http/2" else phrase.encode("latin-1")  # HTTP/2 has no phrases
        assert (exchange.status, exchange.reason) == (status, known)
    assert replied(*chunks, status=418).reason == b""


@pytest.mark.parametrize("phrase", ["a\r\nx-b: 2", "\x00", "\u20ac", "p" * 100_000])
def test_what_is_not_a_phrase_is_the_handlers_mistake(phrase: str) -> None:
    exchange = replied(b"x", status=201, phrase=phrase)
    assert (exchange.status, exchange.reason) == (500, b"")
    assert exchange.json["message"].startswith("The handler set a status phrase ")


def test_a_stream_leaves_chunk_by_chunk() -> None:
    async def test() -> Exchange:
        bench = Bench()
        exchange = bench.begin("/predictions/m")
        job = await bench.registry.next_job()
        begin_answer(job, b"one")
        await exchange.until_chunks(1)
        assert not exchange.ended
        job.sink.chunk(b"two")
        await exchange.until_chunks(2)
        job.finish(200)
        return await exchange.finish()

    exchange = run(test())
    assert exchange.chunks == [b"one", b"two"]
    assert exchange.headers["ts_stream_next"] == "true"
    assert "content-length" not in exchange.headers


def test_an_error_before_the_first_chunk_has_a_body() -> None:
    async def test() -> Exchange:
        bench = Bench()
        exchange = bench.begin("/predictions/m")
        (await bench.registry.next_job()).fail(WorkerDied("It ended.", killed=True))
        return await exchange.finish()

    exchange = run(test())
    assert exchange.status == 507
    assert exchange.json["message"] == worker_died("It ended.")


def test_the_handlers_error_has_its_status() -> None:
    async def test() -> Exchange:
        bench = Bench()
        exchange = bench.begin("/predictions/m")
        (await bench.registry.next_job()).fail(HandlerFailed(422, "no cat in the picture"))
        return await exchange.finish()

    assert run(test()).status == 422


def test_a_deadline_is_answered() -> None:
    async def test() -> Exchange:
        bench = Bench()
        exchange = bench.begin("/predictions/m")
        (await bench.registry.next_job()).cancel(DeadlineExceeded("Too late."))
        return await exchange.finish()

    exchange = run(test())
    assert (exchange.status, exchange.json["message"]) == (504, "Too late.")


def test_a_stream_that_breaks_has_no_clean_end(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        bench = Bench()
        exchange = bench.begin("/predictions/m", x_request_id="id-1")
        job = await bench.registry.next_job()
        begin_answer(job, b"one")
        await exchange.until_chunks(1)
        job.sink.chunk(b"two")
        job.fail(WorkerDied("It ended."))
        with pytest.raises(StreamBroken):
            await exchange.finish()
        assert exchange.body == b"onetwo"
        assert not exchange.ended
        assert bench.log.lines == [("POST /predictions/m", 500)]

    run(test())
    (record,) = caplog.records
    assert (record.levelname, record.__dict__["request_id"]) == ("WARNING", "id-1")
    assert record.getMessage() == f"a stream was cut: {worker_died('It ended.')}"


# -- clients that leave --


def test_before_the_body_is_complete() -> None:
    async def test() -> None:
        bench = Bench()
        exchange = bench.begin("/predictions/m", None)
        exchange.send_body(b"abc", more=True)
        exchange.leave()
        await exchange.finish()
        assert bench.registry.idle
        assert (exchange.status, bench.log.lines) == (0, [("POST /predictions/m", 499)])

    run(test())


def test_while_the_job_waits_or_runs() -> None:
    async def test() -> None:
        bench = Bench()
        exchange = bench.begin("/predictions/m")
        job = await bench.registry.next_job()
        exchange.leave()
        await exchange.finish()
        assert job.cancelled
        assert (exchange.status, bench.log.lines) == (0, [("POST /predictions/m", 499)])

    run(test())


def test_in_the_middle_of_a_stream() -> None:
    async def test() -> None:
        bench = Bench()
        exchange = bench.begin("/predictions/m")
        job = await bench.registry.next_job()
        begin_answer(job, b"one")
        await exchange.until_chunks(1)
        exchange.leave()
        with pytest.raises(StreamBroken):
            await exchange.finish()
        assert job.cancelled
        assert isinstance(job, Job)
        assert job.status == RequestCancelled.status
        assert bench.log.lines == [("POST /predictions/m", 499)]

    run(test())


# -- paths --

OWN = {"explain": "False", "url_path": ""}


@pytest.mark.parametrize(
    ("target", "model", "version", "kind", "headers", "fields"),
    [
        ("/predictions/m?a=1", "m", None, PREDICT, OWN, ["body"]),
        ("/predictions/m/2/a/b", "m", "2", PREDICT, {**OWN, "url_path": "a/b"}, ["body"]),
        ("/predictions/m//a", "m", None, PREDICT, {**OWN, "url_path": "a"}, ["body"]),
        ("/explanations/m/2", "m", "2", EXPLAIN, {"explain": "True", "url_path": ""}, ["body"]),
        ("/invocations?model_name=m", "m", None, PREDICT, {}, ["body", "model_name"]),
        ("/models/m/invoke?a=1", "m", None, PREDICT, {}, ["body", "a"]),
        ("/m/predict?a=1", "m", None, PREDICT, {}, ["body", "a"]),
        ("/m/2/predict", "m", "2", PREDICT, {}, ["body"]),
        ("/v1/models/m:predict?a=1", "m", None, PREDICT, {"explain": "False"}, ["body"]),
        ("/v1/models/m:explain", "m", None, EXPLAIN, {"explain": "True"}, ["body"]),
    ],
)
def test_what_a_path_means(
    target: str, model: str, version: str | None, kind: str, headers: dict[str, str], fields: list[str]
) -> None:
    async def test() -> Job:
        bench = Bench()
        bench.registry.find = lambda name, version=None: None  # type: ignore[method-assign]
        exchange = bench.begin(target, b"x", content_type="text/plain")
        job = await bench.registry.next_job()
        answer(job)
        assert (await exchange.finish()).status == 200
        return job

    job = run(test())
    assert (job.model_name, job.version, job.kind) == (model, version, kind)
    told = dict(job.headers)
    assert {name: told[name] for name in ("explain", "url_path") if name in told} == headers
    assert [field.name for field in job.fields] == fields


@pytest.mark.parametrize(
    "path",
    [
        "/predictions",
        "/predictions//1.0",
        "/prediction/m",
        "/ping",
        "/invocationsx",
        "/x/predictions/m",
        "/models/m/invokes",
        "/models/m/predict",
        "/models/predict",
        "/v1/models/m",
        "/v1/models/m:generate",
        "/v1/models/:predict",
        "/a/b/c/predict",
        "/predict",
    ],
)
def test_paths_of_something_else(path: str) -> None:
    family = predictions(FakeRegistry())
    assert Router([family], family).find("POST", path).route is None
