"""The other ranks' side of the plan."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from msx_backend.parallel import follower as module
from msx_backend.parallel.follower import Follower
from msx_protocol import (
    CallDone,
    FieldHead,
    PlanCall,
    PlanEnd,
    PlanMessage,
    PlanStep,
    RequestHead,
    encode_frame,
    encode_headers,
)
from msx_sdk.request import InferenceRequest
from tests.backend.parallel.ranks import Gone, Rank


class Bench:
    """A follower that is told everything before it begins."""

    def __init__(self) -> None:
        self.leader, self.end = socket.socketpair()
        self.seen: list[Any] = []
        self.rank = Rank(1, self._handle)
        self.kept: Any = None

    def _handle(self, rank: int, data: list[dict[str, Any]], context: Any) -> Any:
        self.kept = context
        self.seen.append([dict(row) for row in data])
        if data and data[0].get("body") == b"stream":
            return self._stream(context, len(data))
        return [b"dropped"] * len(data)

    def _stream(self, context: Any, size: int) -> Iterator[list[bytes]]:
        for _ in range(5):
            self.seen.append([context.cancelled(idx) for idx in range(size)])
            yield [b"dropped"] * size

    def tell(self, *plans: Any) -> None:
        for plan in plans:
            self.leader.sendall(encode_frame(*plan) if isinstance(plan, tuple) else encode_frame(plan))

    def serve(self, **examples: Any) -> None:
        known = {id: InferenceRequest.of_data(id, {"body": body}) for id, body in examples.items()}
        follower = Follower(self.end, self.rank.replies, self.rank.clock)
        follower.examples = known
        follower.serve(self.rank.runner(follower))

    def reports(self) -> list[CallDone]:
        return [message for message, _ in self.rank.told()]

    def close(self) -> None:
        self.leader.close()
        self.end.close()
        self.rank.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def call(number: int, *bodies: bytes, cancelled: tuple[int, ...] = (), warmup: bool = False) -> tuple[PlanCall, bytes]:
    heads = [
        RequestHead(n, f"id{n}", encode_headers([]), [FieldHead("body", None, len(body))], None)
        for n, body in enumerate(bodies, 1)
    ]
    return PlanCall(number, heads, list(cancelled), warmup), b"".join(bodies)


def test_an_example_is_given_once(bench: Bench) -> None:
    """A continuous handler gets its inputs in the first of several calls, as on rank 0."""
    again = PlanCall(2, [RequestHead(1, "id1", encode_headers([]), [], None)], [], True)
    bench.tell(call(1, b"", warmup=True), again, PlanEnd())
    bench.serve(id1="mine")
    assert bench.seen == [[{"body": "mine"}], [{}]]


def test_calls_are_made_and_reported(bench: Bench) -> None:
    bench.tell(call(1, b"a", b"b"), call(2, b"c"), PlanEnd())
    bench.serve()
    assert bench.seen == [[{"body": b"a"}, {"body": b"b"}], [{"body": b"c"}]]
    assert bench.reports() == [CallDone(1, [1, 2], 0, {}), CallDone(2, [1], 0, {})]


def test_what_is_told_after_the_end_is_not_done(bench: Bench) -> None:
    bench.tell(PlanEnd(), call(1, b"a"))
    bench.serve()
    assert bench.seen == []


def test_steps_and_cancels_are_rank_0s(bench: Bench) -> None:
    steps = [PlanStep(1, True, []), PlanStep(1, True, [2]), PlanStep(1, False, [1, 2])]
    bench.tell(call(1, b"stream", b"x"), *steps, PlanEnd())
    bench.serve()
    assert bench.seen[1:] == [[False, False], [False, True]]
    assert bench.reports() == [CallDone(1, [1, 2], 3, {})]


def test_a_cancel_before_the_call(bench: Bench) -> None:
    bench.tell(call(1, b"stream", b"x", cancelled=(2,)), PlanStep(1, True, []), PlanStep(1, False, []), PlanEnd())
    bench.serve()
    assert bench.seen[1:] == [[False, True]]


def test_steps_of_a_stream_that_ended_here_are_passed_over(bench: Bench) -> None:
    steps = [PlanStep(1, True, []) for _ in range(8)]
    bench.tell(call(1, b"stream"), *steps, PlanStep(1, False, []), call(2, b"next"), PlanEnd())
    bench.serve()
    assert bench.seen[-1] == [{"body": b"next"}]
    assert [report.steps for report in bench.reports()] == [6, 0]


def test_the_next_call_ends_a_stream_that_rank_0_does_not_have(bench: Bench) -> None:
    bench.tell(call(1, b"stream"), call(2, b"next"), PlanEnd())
    bench.serve()
    assert bench.seen == [[{"body": b"stream"}], [{"body": b"next"}]]
    assert [report.steps for report in bench.reports()] == [1, 0]


def test_examples_are_its_own(bench: Bench) -> None:
    bench.tell(call(1, b"", warmup=True), call(2, b"", warmup=False), PlanEnd())
    bench.serve(id1=[1, 2, 3])
    assert bench.seen == [[{"body": [1, 2, 3]}], [{"body": b""}]]


def test_an_error_is_reported_and_the_next_call_made(bench: Bench) -> None:
    def handle(rank: int, data: Any, context: Any) -> Any:
        if data[0]["body"] == b"bad":
            raise ValueError("\udc80 no")
        return [b""]

    bench.rank.close()
    bench.rank = Rank(1, handle)
    bench.tell(call(1, b"bad"), call(2, b"good"), PlanEnd())
    bench.serve()
    assert [report.error for report in bench.reports()] == ["ValueError: \\udc80 no", ""]


def test_the_worker_hears_of_an_error_before_it_is_reported(bench: Bench) -> None:
    """Errors on a message of rank 0's handler count, too, although no runner makes that call."""
    raised: list[BaseException] = []

    def follow(message: bytes) -> None:
        raise ValueError(message.decode())

    bench.tell((PlanMessage(1), b"no"), PlanEnd())
    follower = Follower(bench.end, bench.rank.replies, bench.rank.clock, follow, raised.append)
    follower.serve(bench.rank.runner(follower))
    assert [str(error) for error in raised] == ["no"]
    assert [report.error for report in bench.reports()] == ["ValueError: no"]


def test_inputs_are_free_after_the_call(bench: Bench) -> None:
    """A handler may keep its context."""
    bench.tell(call(1, b"x" * 1000), PlanEnd())
    bench.serve()
    assert bench.kept is not None
    assert bench.kept._bound.requests[0].parts == {}


@pytest.mark.parametrize("way", ["close", "reset"])
def test_when_rank_0_is_gone_it_waits_for_its_own_end(bench: Bench, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a stream too, where the handler must not see an error."""

    def wait(gone: str) -> None:
        raise Gone(gone)

    monkeypatch.setattr(module, "wait_for_the_end", wait)
    bench.tell(call(1, b"stream"), PlanStep(1, True, []))
    if way == "reset":
        bench.end.sendall(b"never read")
    bench.leader.close()
    with pytest.raises(Gone, match=r"^rank 0$"):
        bench.serve()
    assert bench.reports() == []
