import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
import uvloop
from grpc import StatusCode

from msx_core.held_bytes import HeldBytes
from msx_core.replies import reply_buffer
from msx_core.replies.stream_credit import BEHIND, StreamBuffers
from msx_core.service_errors import (
    DeadlineExceeded,
    HandlerFailed,
    ModelNotFound,
    Overloaded,
    ServiceError,
    ServiceUnavailable,
    WorkerDied,
)
from msx_frontend.apis.torchserve.grpc import sequences
from msx_frontend.job import PREDICT, STREAM, Field
from tests.frontend.harness import until
from tests.frontend.keys.some import SELDOM, OneKey, some_key
from tests.frontend.net.grpc.harness import Request, Served, answer, begin, failure, request, serving, told
from tests.phrases import worker_died
from tests.retry import told_wait

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def with_server(test: Callable[[Served], Awaitable[None]], **settings: object) -> None:
    async def main() -> None:
        async with serving(**settings) as served:  # type: ignore[arg-type]
            await test(served)

    asyncio.run(main())


# -- Predictions --


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_one_prediction(run: Callable[..., None]) -> None:
    async def main() -> None:
        async with serving() as served:
            call = served.predict(request("mnist", "2.0", data=b"\x00\xff", more=b""))
            job = await served.registry.next_job()
            assert (job.model_name, job.version, job.kind, job.deadline) == ("mnist", "2.0", PREDICT, None)
            assert sorted(job.fields) == [Field("data", None, b"\x00\xff"), Field("more", None, b"")]
            assert job.headers == []
            assert UUID4.fullmatch(job.id)
            answer(job, b"seven")
            assert (await call).prediction == b"seven"
            assert not job.cancelled

    run(main())


def test_no_version_means_the_default_one() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request("m", ""))
        job = await served.registry.next_job()
        assert job.version is None
        answer(job)
        assert (await call).prediction == b""

    with_server(test)


def test_a_method_stands_behind_the_name() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request("m:top", "2.0"))
        job = await served.registry.next_job()
        assert (job.model_name, job.version, job.kind) == ("m", "2.0", "method:top")
        answer(job)
        await call

    with_server(test)


def test_the_client_may_choose_the_request_id_and_gets_it_back() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request(), metadata=(("x-request-id", "mine"),))
        job = await served.registry.next_job()
        assert job.id == "mine"
        job.fail(HandlerFailed(400, "no"))
        error = await failure(call)
        metadata: Any = error.trailing_metadata()
        assert [value for key, value in metadata if key == "x-request-id"] == ["mine"]

    with_server(test)


def test_a_streamed_answer_is_one_prediction() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        job = await served.registry.next_job()
        begin(job, b"one ")
        await asyncio.sleep(0)
        job.sink.chunk(b"two ")
        job.sink.chunk(b"three")
        job.finish(200)
        assert (await call).prediction == b"one two three"

    with_server(test)


def test_the_status_that_a_handler_set_is_ignored() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        answer(await served.registry.next_job(), b"teapot", status=418)
        assert (await call).prediction == b"teapot"

    with_server(test)


@pytest.mark.parametrize(
    ("error", "code", "details"),
    [
        (
            HandlerFailed(404, "no such row"),
            StatusCode.NOT_FOUND,
            "no such row\norg.pytorch.serve.http.InternalServerException",
        ),
        (
            HandlerFailed(418, "teapot"),
            StatusCode.FAILED_PRECONDITION,
            "teapot\norg.pytorch.serve.http.InternalServerException",
        ),
        (WorkerDied("Why."), StatusCode.INTERNAL, worker_died("Why.\norg.pytorch.serve.http.InternalServerException")),
        (
            DeadlineExceeded("Late."),
            StatusCode.DEADLINE_EXCEEDED,
            "Late.\norg.pytorch.serve.http.RequestTimeoutException",
        ),
    ],
)
def test_a_job_that_fails(error: ServiceError, code: StatusCode, details: str) -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        (await served.registry.next_job()).fail(error)
        failed = await failure(call)
        assert (failed.code(), failed.details()) == (code, details)

    with_server(test)


def test_a_handler_that_says_very_much() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        (await served.registry.next_job()).fail(HandlerFailed(400, "é" * 1_000_000))
        error = await failure(call)
        assert error.code() is StatusCode.INVALID_ARGUMENT
        assert (error.details() or "").startswith("éé")

    with_server(test)


@pytest.mark.parametrize(
    ("refusal", "details"),
    [
        (ModelNotFound("m"), "Model not found: m\norg.pytorch.serve.archive.model.ModelNotFoundException"),
        (ServiceUnavailable("no worker"), "no worker\norg.pytorch.serve.http.ServiceUnavailableException"),
    ],
)
def test_a_job_that_is_not_taken_is_internal_as_in_torchserve(refusal: ServiceError, details: str) -> None:
    async def test(served: Served) -> None:
        served.registry.refusal = refusal
        for call in (served.predict(request()), served.stream(request())):
            error = await failure(call)
            assert (error.code(), error.details()) == (StatusCode.INTERNAL, details)

    with_server(test)


def test_an_overloaded_server_says_when_to_ask_again() -> None:
    async def test(served: Served) -> None:
        served.registry.refusal = Overloaded("full", wait=5)
        for call in (served.predict(request()), served.stream(request())):
            metadata = told(await failure(call))
            assert 5 <= told_wait(metadata) <= 10
            assert metadata["grpc-retry-pushback-ms"] == metadata["retry-after-ms"]
            assert metadata["x-request-id"]

    with_server(test)


def test_too_much_is_held() -> None:
    held = HeldBytes(70_000)

    async def test(served: Served) -> None:
        large = request(data=bytes(30_000))
        waiting = [asyncio.ensure_future(begun(served, large)) for begun in (one_prediction, one_stream)]
        jobs = [await served.registry.next_job() for _ in waiting]
        assert 60_000 <= held.held < 61_000
        for begun in (one_prediction, one_stream):
            with pytest.raises(grpc.aio.AioRpcError, match=r"more than max_queued_bytes \(70000\)") as refused:
                await begun(served, large)
            assert refused.value.code() is StatusCode.INTERNAL
            assert told_wait(told(refused.value))
        for job in jobs:
            answer(job, b"1")
        await asyncio.gather(*waiting)
        assert held.held == 0
        left = served.predict(large)
        job = await served.registry.next_job()
        left.cancel()
        await served.registry.ended(job)
        await until(lambda: held.held == 0)

    with_server(test, held=held)


async def one_prediction(served: Served, asked: Any) -> None:
    await served.predict(asked)


async def one_stream(served: Served, asked: Any) -> None:
    assert [response async for response in served.stream(asked)]


def test_a_sequence_holds_what_is_not_answered() -> None:
    held = HeldBytes(50_000)

    async def test(served: Served) -> None:
        call = served.stream2()
        for _ in range(2):
            await call.write(request(data=bytes(30_000)))
            job = await served.registry.next_job()
            assert 30_000 <= held.held < 31_000
            answer(job, b"1")
            assert (await call.read()).prediction == b"1"
        await call.write(request(data=bytes(30_000)))
        job = await served.registry.next_job()
        await call.write(request(data=bytes(30_000)))
        await call.write(request(data=b"small"))
        last = await served.registry.next_job()
        answer(job, b"1")
        answer(last, b"2")
        assert (await call.read()).prediction == b"1"
        assert "max_queued_bytes (50000)" in (await call.read()).status.message
        assert (await call.read()).prediction == b"2"
        call.cancel()
        await until(lambda: held.held == 0)

    with_server(test, held=held)


def test_a_request_without_a_model() -> None:
    async def test(served: Served) -> None:
        error = await failure(served.predict(request("")))
        assert error.code() is StatusCode.INTERNAL
        assert error.details() == "Parameter model_name is required.\norg.pytorch.serve.http.BadRequestException"

    with_server(test)


# -- cancel and deadline --


def test_a_client_that_cancels_cancels_its_job() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        job = await served.registry.next_job()
        call.cancel()
        await served.registry.ended(job)
        assert job.cancelled

    with_server(test)


def test_a_client_that_leaves_cancels_its_jobs() -> None:
    async def test(served: Served) -> None:
        async with grpc.aio.insecure_channel(served.server.inference.address) as channel:
            leaver = Served(served.server, channel)
            calls = [leaver.predict(request()), leaver.stream(request())]
            jobs = [await served.registry.next_job() for _ in calls]
        for job in jobs:
            await served.registry.ended(job)
            assert job.cancelled

    with_server(test)


def test_a_cancel_in_the_middle_of_a_stream() -> None:
    async def test(served: Served) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        begin(job, b"one")
        assert (await anext(aiter(call))).prediction == b"one"
        call.cancel()
        await served.registry.ended(job)
        assert job.cancelled

    with_server(test)


def test_the_deadline_reaches_the_job() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request(), timeout=1000)
        job = await served.registry.next_job()
        assert job.deadline is not None
        assert 0 < job.deadline - time.monotonic() < 1100  # gRPC rounds up
        answer(job)
        await call

    with_server(test)


def test_a_deadline_that_passes() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request(), timeout=1)
        job = await served.registry.next_job()
        assert (await failure(call)).code() is StatusCode.DEADLINE_EXCEEDED
        await served.registry.ended(job)
        assert job.cancelled

    with_server(test)


def test_stopping_the_server_cancels_what_still_runs() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        job = await served.registry.next_job()
        await served.server.stop(0)
        await served.registry.ended(job)
        assert job.cancelled
        await failure(call)

    with_server(test)


# -- StreamPredictions --


def test_every_chunk_is_a_response() -> None:
    async def test(served: Served) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        begin(job, b"one", b"two")
        assert (await anext(aiter(call))).prediction == b"one"
        assert (await anext(aiter(call))).prediction == b"two"
        job.sink.chunk(b"three")
        job.finish(200)
        assert [response.prediction async for response in call] == [b"three"]

    with_server(test)


def test_a_stream_of_nothing_still_answers() -> None:
    async def test(served: Served) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        assert (job.kind, job.headers) == (STREAM, [])
        answer(job)
        assert [response.prediction async for response in call] == [b""]

    with_server(test)


def test_an_error_before_the_first_chunk() -> None:
    async def test(served: Served) -> None:
        call = served.stream(request())
        (await served.registry.next_job()).fail(HandlerFailed(429, "slower"))
        error = await failure(call)
        assert (error.code(), error.details()) == (
            StatusCode.RESOURCE_EXHAUSTED,
            "slower\norg.pytorch.serve.http.InternalServerException",
        )

    with_server(test)


def test_an_error_after_the_first_chunk() -> None:
    async def test(served: Served) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        begin(job, b"one", b"two")
        job.fail(WorkerDied("Rank 0 is gone."))
        assert [(await anext(aiter(call))).prediction for _ in range(2)] == [b"one", b"two"]
        error = await failure(call)
        assert error.code() is StatusCode.INTERNAL
        assert error.details() == worker_died("Rank 0 is gone.\norg.pytorch.serve.http.InternalServerException")

    with_server(test)


def test_a_client_that_does_not_read_loses_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_buffer, "UNPACED", StreamBuffers((1 << 20) // BEHIND))

    async def test(served: Served) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        job.sink.start(200, "", [])
        for _ in range(400):  # 100 MB, more than any window of HTTP/2
            job.sink.chunk(bytes(1 << 18))
            await asyncio.sleep(0)
        assert job.cancelled
        assert (await failure(call)).code() is StatusCode.CANCELLED

    with_server(test)


# -- StreamPredictions2 --


def asked(data: bytes = b"1", sequence: str = "", **inputs: bytes) -> Any:
    return Request(model_name="m", input={"data": data, **inputs}, sequence_id=sequence or None)


def test_requests_of_a_sequence_are_answered_in_their_order() -> None:
    async def test(served: Served) -> None:
        call = served.stream2(asked(b"1", "s"), asked(b"2", "s"), metadata=(("x-request-id", "mine"),))
        first, second = [await served.registry.next_job() for _ in range(2)]
        assert [job.id for job in (first, second)] == ["mine", "mine-2"]
        for job in (first, second):
            assert job.headers == [("ts_request_sequence_id", "s")]
        answer(second, b"two")
        begin(first, b"one", b" more")
        first.finish(200)
        replies = [(reply.prediction, reply.sequence_id, reply.HasField("status")) async for reply in call]
        assert replies == [(b"one", "s", False), (b" more", "s", False), (b"two", "s", False)]

    with_server(test)


def test_a_call_is_a_conversation() -> None:
    async def test(served: Served) -> None:
        call = served.stream2()
        for word in (b"a", b"b"):
            await call.write(asked(word, "s"))
            answer(await served.registry.next_job(), word * 2)
            assert (await call.read()).prediction == word * 2
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs lack it

    with_server(test)


def test_the_server_names_a_sequence_that_has_no_name() -> None:
    async def test(served: Served) -> None:
        call = served.stream2(
            asked(b"1"),
            asked(b"2", ts_request_sequence_end=b"TRUE"),
            asked(b"3"),
            asked(b"4", ts_request_sequence_start=b"true"),
        )
        headers = []
        for _ in range(4):
            job = await served.registry.next_job()
            headers.append(dict(job.headers))
            answer(job, b"x")
        ids = [reply.sequence_id async for reply in call]
        assert ids == [one["ts_request_sequence_id"] for one in headers]
        assert ids[0].startswith("ts-seq-")
        assert ids[0] == ids[1]
        assert len(set(ids)) == 3
        start, end = "ts_request_sequence_start", "ts_request_sequence_end"
        assert [(one.get(start), one.get(end)) for one in headers] == [
            ("true", None),
            (None, "true"),
            ("true", None),
            ("true", None),
        ]

    with_server(test)


def test_the_handlers_name_of_a_sequence_and_headers_of_ones_own() -> None:
    async def test(served: Served) -> None:
        call = served.stream2(asked(sequence="s"))
        job = await served.registry.next_job()
        assert ("my-seq", "s") in job.headers
        job.sink.start(200, "", [("My-Seq", "t")])
        job.sink.chunk(b"x")
        job.finish(200)
        assert [reply.sequence_id async for reply in call] == ["t"]

    with_server(test, ts_header_key_sequence_id="my-seq")


def test_an_error_in_a_sequence_is_the_status_of_its_response() -> None:
    async def test(served: Served) -> None:
        nameless = asked(sequence="s")
        nameless.model_name = ""
        call = served.stream2(asked(sequence="s"), nameless, asked(sequence="s"))
        (await served.registry.next_job()).fail(HandlerFailed(404, "no such row"))
        answer(await served.registry.next_job(), b"ok")
        failed, refused, answered = [reply async for reply in call]
        assert (failed.status.code, failed.status.message, failed.sequence_id) == (5, "no such row", "s")
        (reason,) = failed.status.details
        assert reason.type_url == "type.googleapis.com/google.rpc.ErrorInfo"
        assert b"org.pytorch.serve.http.InternalServerException" in reason.value
        assert (refused.status.code, refused.status.message) == (13, "Parameter model_name is required.")
        assert (answered.prediction, answered.HasField("status")) == (b"ok", False)

    with_server(test)


def test_a_client_that_leaves_a_sequence_cancels_all_its_jobs() -> None:
    async def test(served: Served) -> None:
        call = served.stream2(asked(b"1", "s"), asked(b"2", "s"))
        jobs = [await served.registry.next_job() for _ in range(2)]
        begin(jobs[0], b"one")
        assert (await call.read()).prediction == b"one"
        call.cancel()
        for job in jobs:
            await served.registry.ended(job)
            assert job.cancelled

    with_server(test)


def test_a_client_that_asks_much_is_not_read_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "MOST_AHEAD", 2)

    async def test(served: Served) -> None:
        call = served.stream2(*(asked(b"%d" % number, "s") for number in range(9)))
        jobs = [await served.registry.next_job() for _ in range(4)]  # one is answered, two wait, one for room
        for job in jobs:
            answer(job, b"x")
        for _ in range(5):
            answer(await served.registry.next_job(), b"x")
        assert len([reply async for reply in call]) == 9

    with_server(test)


def test_a_deadline_ends_a_sequence() -> None:
    async def test(served: Served) -> None:
        call = served.stream2(asked(sequence="s"), timeout=1)
        job = await served.registry.next_job()
        assert (await failure(call)).code() is StatusCode.DEADLINE_EXCEEDED
        await served.registry.ended(job)
        assert job.cancelled

    with_server(test)


def test_the_sequence_of_a_single_prediction() -> None:
    async def test(served: Served) -> None:
        call = served.predict(asked(sequence="s"))
        job = await served.registry.next_job()
        assert ("ts_request_sequence_id", "s") in job.headers
        answer(job, b"x")
        await call

    with_server(test)


# -- limits --


def test_a_request_that_is_too_large() -> None:
    async def test(served: Served) -> None:
        error = await failure(served.predict(request(data=bytes(2000))))
        assert error.code() is StatusCode.RESOURCE_EXHAUSTED
        assert "max" in (error.details() or "")

    with_server(test, max_request_size=1000)


@pytest.mark.parametrize("chunks", [(bytes(1001),), (bytes(600), bytes(600))])
def test_a_prediction_that_is_too_large(chunks: tuple[bytes, ...]) -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        job = await served.registry.next_job()
        for chunk in chunks:
            begin(job, chunk)
            await asyncio.sleep(0)
        error = await failure(call)
        assert error.code() is StatusCode.RESOURCE_EXHAUSTED
        assert "max_response_size (1000 bytes)" in (error.details() or "")
        assert job.cancelled

    with_server(test, max_response_size=1000)


def test_a_chunk_that_is_too_large() -> None:
    async def test(served: Served) -> None:
        call = served.stream(request())
        job = await served.registry.next_job()
        begin(job, bytes(1000), bytes(1001))
        assert len((await anext(aiter(call))).prediction) == 1000
        error = await failure(call)
        assert error.code() is StatusCode.RESOURCE_EXHAUSTED
        assert "max_response_size (1000 bytes)" in (error.details() or "")
        assert job.cancelled

    with_server(test, max_response_size=1000)


def test_a_response_of_exactly_the_limit_passes() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request())
        answer(await served.registry.next_job(), bytes(1000))
        assert len((await call).prediction) == 1000
        stream = served.stream(request())
        answer(await served.registry.next_job(), bytes(1000), bytes(1000))
        assert [len(response.prediction) async for response in stream] == [1000, 1000]

    with_server(test, max_response_size=1000)


# -- Ping, tokens, access log --


def test_ping_says_what_rest_says() -> None:
    async def test(served: Served) -> None:
        assert (await served.ping()).health == '{\n  "status": "Healthy"\n}'
        served.health.healthy = False
        assert (await served.ping()).health == '{\n  "status": "Unhealthy"\n}'

    with_server(test)


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer wrong"),)])
def test_no_method_without_the_token(metadata: tuple[tuple[str, str], ...]) -> None:
    async def test(served: Served) -> None:
        for call in (
            served.ping(metadata),
            served.predict(request(), metadata=metadata),
            served.stream(request(), metadata=metadata),
            served.stream2(request(), metadata=metadata),
        ):
            error = await failure(call)
            assert (error.code(), error.details()) == (StatusCode.PERMISSION_DENIED, "Token refused")

    with_server(test, tokens=OneKey())


def test_the_right_token() -> None:
    async def test(served: Served) -> None:
        metadata = (("authorization", "Bearer K"),)
        await served.ping(metadata)
        call = served.predict(request(), metadata=metadata)
        answer(await served.registry.next_job(), b"in")
        assert (await call).prediction == b"in"

    with_server(test, tokens=OneKey())


def test_a_key_for_some_models() -> None:
    async def test(served: Served) -> None:
        metadata = (("authorization", "Bearer K"),)
        for call in (
            served.predict(request("n"), metadata=metadata),
            served.stream(request("n"), metadata=metadata),
        ):
            error = await failure(call)
            assert error.code() == StatusCode.PERMISSION_DENIED
            assert 'The key "team-a" is not for model n, but for: m (api_keys_file).' in (error.details() or "")
        requests = served.stream2(request("n"), metadata=metadata)
        (refused,) = [response async for response in requests]
        assert refused.status.code == StatusCode.PERMISSION_DENIED.value[0]
        call = served.predict(request("m"), metadata=metadata)
        job = await served.registry.next_job()
        assert job.model_name == "m", "of the others came no job"
        answer(job, b"in")
        await call

    with_server(test, tokens=OneKey(some_key("team-a", models=("m",))))


def test_a_rate() -> None:
    async def test(served: Served) -> None:
        metadata = (("authorization", "Bearer K"),)
        call = served.predict(request("m"), metadata=metadata)
        answer(await served.registry.next_job(), b"in")
        await call
        for refused in (
            served.predict(request("m"), metadata=metadata),
            served.stream(request("m"), metadata=metadata),
        ):
            error = await failure(refused)
            assert error.code() == StatusCode.RESOURCE_EXHAUSTED
            assert 'The key "team-a" is above its rate of 0.001 per second (api_keys_file).' in (error.details() or "")
        assert [(await served.access_log.lines.get())[0].key_name for _ in range(3)] == ["team-a"] * 3

    with_server(test, tokens=OneKey(some_key("team-a", rate=SELDOM)))


def test_each_request_of_a_sequence_counts_for_the_rate() -> None:
    async def test(served: Served) -> None:
        stream = served.stream2(request("m"), request("m"), metadata=(("authorization", "Bearer K"),))
        answer(await served.registry.next_job(), b"in")
        answered, refused = [response async for response in stream]
        assert (answered.prediction, refused.status.code) == (b"in", StatusCode.RESOURCE_EXHAUSTED.value[0])

    with_server(test, tokens=OneKey(some_key("team-a", rate=SELDOM)))


def test_the_access_log_has_every_call() -> None:
    async def test(served: Served) -> None:
        call = served.predict(request(), metadata=(("x-request-id", "a"),))
        answer(await served.registry.next_job())
        await call
        line, status = await served.access_log.lines.get()
        assert status == 0
        assert (line.method, line.id) == ("gRPC", "a")
        assert line.target == "org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions"
        assert line.client.startswith("127.0.0.1:")
        assert await _logged(served, served.predict(request(""))) == StatusCode.INTERNAL.value[0]
        gone = served.stream(request())
        await served.registry.next_job()
        gone.cancel()
        assert (await served.access_log.lines.get())[1] == StatusCode.CANCELLED.value[0]

    with_server(test)


async def _logged(served: Served, call: object) -> int:
    await failure(call)
    return (await served.access_log.lines.get())[1]
