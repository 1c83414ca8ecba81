"""Handlers that are called once a token."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.continuous import ContinuousRunner
from msx_core.resolve import resolve_object
from msx_core.warmup import warm_up
from msx_sdk import Last
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.testing import LocalModel
from tests.core.recording import LAST, Handles, Sink, requests


class Countdown:
    """A body is the number of tokens; `seen` has the inputs of each call."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.stops: list[Any] = []

    def handle(self, data: Any, context: Context) -> Any:
        self.seen.append([dict(row) for row in data])
        for id, row in zip(context.request_ids.values(), data, strict=True):
            if row:
                context.cache[id] = int(row["body"])
            context.cache[id] -= 1
        left = [context.cache[id] for id in context.request_ids.values()]
        context.stopping_criteria = [lambda value, n=n: self.stop(value, n) for n in left]
        return [f"{n}" for n in left]

    def stop(self, value: Any, left: int) -> bool:
        self.stops.append(value)
        return left <= 0


class Bench:
    def __init__(self, handler: Any) -> None:
        self.context, self.sink = Context(ModelInfo("m")), Sink()
        self.runner = ContinuousRunner(resolve_object(handler), self.context)

    def call(self, *batch: InferenceRequest) -> list[str]:
        """Returns the ids of those that want another call."""
        self.runner.run(list(batch), self.sink)
        return [request.id for request in self.runner.open]

    def run(self, *batch: InferenceRequest) -> dict[str, list[Any]]:
        self.call(*batch)
        while self.runner.open:
            self.call(*self.runner.open)
        return self.sink.events


def answering(*results: Any, criteria: Any = None) -> Any:
    def handle(data: Any, context: Context) -> Any:
        context.stopping_criteria = criteria
        return list(results)

    return Handles(handle)


def test_every_value_is_a_chunk_until_the_criterion_says_stop() -> None:
    handler = Countdown()
    events = Bench(handler).run(*requests(b"3", b"1"))
    assert events == {"r0": [b"2", b"1", b"0", LAST], "r1": [b"0", LAST]}
    assert handler.seen == [[{"body": b"3"}, {"body": b"1"}], [{}], [{}]]
    assert handler.stops == ["2", "0", "1", "0"]


def test_requests_join_while_others_go_on() -> None:
    bench = Bench(Countdown())
    first, second = requests(b"3", b"2")
    assert bench.call(first) == ["r0"]
    assert bench.call(first, second) == ["r0", "r1"]
    assert bench.call(first, second) == []
    assert bench.sink.events == {"r0": [b"2", b"1", b"0", LAST], "r1": [b"1", b"0", LAST]}


@pytest.mark.parametrize(("stop", "goes_on"), [(False, True), (0, True), (None, False), (True, False)])
def test_only_false_says_that_there_is_more(stop: Any, goes_on: bool) -> None:
    bench = Bench(answering("x", criteria=[lambda value: stop]))
    assert bench.call(*requests(b"")) == (["r0"] if goes_on else [])
    assert bench.sink.events["r0"] == ([b"x"] if goes_on else [b"x", LAST])


@pytest.mark.parametrize("criteria", [None, []])
def test_without_criteria_a_call_answers_for_good(criteria: Any) -> None:
    assert Bench(answering("x", None, criteria=criteria)).run(*requests(b"", b"")) == {
        "r0": [b"x", LAST],
        "r1": [b"", LAST],
    }


def test_none_is_not_a_chunk() -> None:
    bench = Bench(answering(None, criteria=[lambda value: False]))
    assert bench.call(*requests(b"")) == ["r0"]
    assert "r0" not in bench.sink.events


def test_last_and_exceptions_end_a_request_without_its_criterion() -> None:
    def never(value: Any) -> bool:
        raise AssertionError

    bench = Bench(answering(Last("x"), ValueError("bad"), criteria=[never, never]))
    assert bench.call(*requests(b"", b"")) == []
    assert bench.sink.events["r0"] == [b"x", LAST]
    assert bench.sink.failure("r1").status == 503


def test_the_head_leaves_with_the_first_chunk() -> None:
    def handle(data: Any, context: Context) -> Any:
        context.set_response_status(202)
        context.stopping_criteria = [lambda value: not data[0]]
        return ["x"]

    bench = Bench(Handles(handle))
    bench.run(*requests(b"2"))
    assert [head.status for head in bench.sink.heads["r0"]] == [202]


def test_an_error_fails_all_of_the_call_and_nothing_is_run_again() -> None:
    class Fails(Countdown):
        def handle(self, data: Any, context: Context) -> Any:
            answers = super().handle(data, context)
            if len(data) == 2:
                raise ValueError("together")
            return answers

    handler = Fails()
    bench = Bench(handler)
    first, second = requests(b"3", b"3")
    bench.call(first)
    assert bench.call(first, second) == []
    assert [bench.sink.failure(id).status for id in ("r0", "r1")] == [503, 503]
    assert len(handler.seen) == 2


@pytest.mark.parametrize(
    ("result", "criteria", "message"),
    [
        (["x"], [], "number of batch response mismatched: 2 requests, 1 responses"),
        (["x", "y"], [lambda value: False], "context.stopping_criteria has 1 entries for 2 requests"),
        ("xy", None, "Invalid model predict output"),
    ],
)
def test_what_does_not_fit_the_batch(result: Any, criteria: Any, message: str) -> None:
    def handle(data: Any, context: Context) -> Any:
        context.stopping_criteria = criteria
        return result

    bench = Bench(Handles(handle))
    bench.call(*requests(b"", b""))
    assert [bench.sink.failure(id).message.startswith(message) for id in ("r0", "r1")] == [True, True]


def test_a_generator_is_refused() -> None:
    def handle(data: Any, context: Context) -> Any:
        yield ["x"]

    bench = Bench(handle)
    assert bench.call(*requests(b"")) == []
    assert "does not yield" in bench.sink.failure("r0").message


def test_what_the_cache_holds_of_a_request_goes_with_it() -> None:
    bench = Bench(Countdown())
    first, second = requests(b"9", b"9")
    bench.context.cache["other"] = "the handler's own"
    bench.call(first, second)
    bench.call(second)
    assert bench.context.cache == {"r1": 7, "other": "the handler's own"}


def test_on_a_rank_that_follows_a_request_is_new_in_each_call() -> None:
    """Its id says that it is the same: nothing is forgotten."""
    handler = Countdown()
    bench = Bench(handler)
    bench.runner.run(requests(b"3"), None)
    bench.runner.run([InferenceRequest("r0", {})], None)
    assert bench.context.cache == {"r0": 1}
    assert handler.seen == [[{"body": b"3"}], [{}]]


@pytest.mark.parametrize("header", ["describe", "explain"])
def test_descriptions_do_not_disturb_requests_in_progress(header: str) -> None:
    class Tells(Countdown):
        def handle(self, data: Any, context: Context) -> Any:
            if context.get_request_header(0, header) == "True":
                return ["told"]
            return super().handle(data, context)

    bench = Bench(Tells())
    (first,) = requests(b"2")
    bench.call(first)
    bench.call(InferenceRequest("d", {}, Headers({header: "True"})))
    assert bench.sink.events["d"] == [b"told", LAST]
    assert bench.context.cache == {"r0": 1}
    assert bench.call(first) == []


def test_warm_up_goes_on_until_the_example_is_answered() -> None:
    handler = Countdown()
    bench = Bench(handler)
    warm_up(bench.runner, [[InferenceRequest.of_data("warmup-0", {"body": "3"})]])
    assert handler.seen == [[{"body": "3"}], [{}], [{}]]
    with pytest.raises(HandlerLoadError, match="invalid literal"):
        warm_up(bench.runner, [[InferenceRequest.of_data("warmup-0", {"body": "x"})]])


def test_a_local_model() -> None:
    with LocalModel(Countdown(), config={"continuousBatching": True}) as model:
        (first, second) = model.predict([Part(b"2").data, b"3"])
    assert (first.chunks, second.chunks) == ([b"1", b"0"], [b"2", b"1", b"0"])
    assert first.complete


def test_a_head_that_leaves_before_the_first_value() -> None:
    """A handler that says nothing in its first call is expected to stream, once a request."""
    values = [None, None, "a"]

    def handle(data: Any, context: Context) -> Any:
        context.stopping_criteria = [lambda value: value == "a" for _ in data]
        return [values.pop(0)]

    bench = Bench(Handles(handle))
    bench.call(*requests(b""))
    of_call, alone = bench.sink.expected
    assert of_call[0] is not alone[0], "the batch of a call ends with it"
    bench.call(*bench.runner.open)
    alone[0].begin_stream(alone[1])
    bench.call(*bench.runner.open)
    assert dict(bench.sink.events) == {"r0": [b"", b"a", LAST]}
    assert len(bench.sink.heads["r0"]) == 1
    assert len(bench.sink.expected) == 2
