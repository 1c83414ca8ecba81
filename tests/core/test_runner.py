from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from typing import Any

import pytest

from msx_core.failures import RequestFailure
from msx_core.resolve import resolve_object
from msx_sdk import InvalidInput, PredictionError
from msx_sdk.context import Context, ModelInfo
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import Runner
from tests.core.recording import LAST, Handles, Sink, requests, run


class Calls:
    """Raises when a body is `bad`, else echoes; remembers the size of each call."""

    def __init__(self, error: BaseException) -> None:
        self.error, self.sizes = error, list[int]()

    def handle(self, data: Any, context: Context) -> Any:
        self.sizes.append(len(data))
        if any(row["body"] == b"bad" for row in data):
            raise self.error
        return [bytes(row["body"]) for row in data]


# -- lists --


def test_each_request_gets_its_entry() -> None:
    sink = run(Handles(lambda data, context: [row["body"] for row in data]), requests(b"a", b"b"))
    assert sink.events == {"r0": [b"a", LAST], "r1": [b"b", LAST]}


def test_an_exception_in_the_list_fails_its_request_alone() -> None:
    def handle(data: Any, context: Context) -> Any:
        return [InvalidInput("field x"), "fine", PredictionError(429, "busy"), ValueError("bug")]

    sink = run(Handles(handle), requests(*[b""] * 4))
    assert sink.events["r1"] == [b"fine", LAST]
    assert [sink.failure(id).status for id in ("r0", "r2", "r3")] == [400, 429, 503]
    assert sink.failure("r3").message == "Prediction failed: ValueError: bug"


@pytest.mark.parametrize("result", ["text", {"a": 1}, None, ["only one"], [1, 2, 3]])
def test_what_does_not_answer_the_batch_is_503(result: Any) -> None:
    sink = run(Handles(lambda data, context: result), requests(b"", b""), isolate=False)
    assert [sink.failure(id).status for id in ("r0", "r1")] == [503, 503]


def test_a_coroutine_from_a_plain_function_is_refused() -> None:
    async def answer() -> list[str]:
        return ["never"]

    coroutines = []

    def handle(data: Any, context: Context) -> Any:
        coroutines.append(answer())
        return coroutines[-1]

    sink = run(Handles(handle), requests(b""))
    coroutines[0].close()
    assert "not coroutine" in sink.failure("r0").message


# -- isolation --


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("x"), 503),
        (InvalidInput("x"), 400),
        (MemoryError(), 507),
        (SystemExit(3), 503),
        (asyncio.CancelledError(), 503),
    ],
)
def test_one_bad_request_of_eight_fails_alone(error: BaseException, status: int) -> None:
    calls = Calls(error)
    bodies = [b"0", b"1", b"2", b"bad", b"4", b"5", b"6", b"7"]
    sink = run(calls, requests(*bodies))
    assert calls.sizes == [8] + [1] * 8
    assert sink.failure("r3").status == status
    good = [n for n in range(8) if n != 3]
    assert [sink.events[f"r{n}"] for n in good] == [[bodies[n], LAST] for n in good]


def test_a_request_alone_is_not_run_twice() -> None:
    calls = Calls(ValueError("x"))
    run(calls, requests(b"bad"))
    assert calls.sizes == [1]


def test_isolation_can_be_switched_off() -> None:
    calls = Calls(ValueError("x"))
    sink = run(calls, requests(b"good", b"bad"), isolate=False)
    assert calls.sizes == [2]
    assert [sink.failure(id).status for id in ("r0", "r1")] == [503, 503]


def test_who_left_meanwhile_is_not_run_again() -> None:
    batch = requests(b"good", b"bad")

    def handle(data: Any, context: Context) -> Any:
        calls.append(len(data))
        batch[1].cancelled = True
        if len(data) == 2:
            raise ValueError("x")
        return ["alone"]

    calls: list[int] = []
    assert run(Handles(handle), batch).events == {"r0": [b"alone", LAST]}
    assert calls == [2, 1]


def test_nothing_is_retried_after_something_was_sent() -> None:
    calls = 0

    def handle(data: Any, context: Context) -> Any:
        nonlocal calls
        calls += 1
        context.send(["partial", None])
        raise ValueError("x")

    sink = run(Handles(handle), requests(b"", b""))
    assert calls == 1
    assert sink.events["r0"][0] == b"partial"
    assert [sink.failure(id).status for id in ("r0", "r1")] == [503, 503]


def test_a_retry_starts_with_a_clean_response() -> None:
    def handle(data: Any, context: Context) -> Any:
        if len(data) == 2:
            context.set_response_status(418)
            raise ValueError("x")
        return ["fine"]

    sink = run(Handles(handle), requests(b"", b""))
    assert [sink.heads[id][0].status for id in ("r0", "r1")] == [200, 200]


def test_a_failure_is_logged_with_its_traceback_and_a_refusal_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run(Calls(ValueError("bug")), requests(b"bad"))
    run(Calls(InvalidInput("field x")), requests(b"bad"))
    failure, refusal = caplog.records
    assert failure.exc_info is not None
    assert failure.__dict__["request_id"] == "r0"
    assert refusal.exc_info is None
    assert refusal.getMessage() == "the handler answers 400: field x"


# -- what a call leaves behind --


def test_a_thread_that_outlives_its_batch_reaches_no_client() -> None:
    contexts: list[Context] = []

    def handle(data: Any, context: Context) -> Any:
        contexts.append(context)
        contexts[0].send(["stale"])
        return ["answer"]

    runner, sink = Runner(resolve_object(Handles(handle)), Context(ModelInfo("m"))), Sink()
    runner.run([InferenceRequest("first", {})], sink)
    runner.run([InferenceRequest("second", {})], sink)
    assert sink.events == {"first": [b"stale", b"answer", LAST], "second": [b"answer", LAST]}


def test_requests_are_let_go_after_their_end() -> None:
    class Held(InferenceRequest):
        __slots__ = ("__weakref__",)

    runner = Runner(resolve_object(Handles(lambda data, context: [b""])), Context(ModelInfo("m")))
    request = Held("r", {})
    witness = weakref.ref(request)
    runner.run([request], Sink())
    del request
    gc.collect()
    assert witness() is None


def test_the_caller_hears_of_what_the_handler_raises_before_its_requests_are_answered() -> None:
    raised: list[BaseException] = []

    class Late(Sink):
        def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
            assert raised == [error]
            super().fail(request, failure)

    error, sink = ValueError("x"), Late()
    runner = Runner(resolve_object(Calls(error)), Context(ModelInfo("m")), raised=raised.append)
    runner.run(requests(b"bad"), sink)
    assert sink.failure("r0").status == 503
