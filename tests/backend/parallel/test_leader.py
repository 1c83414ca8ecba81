"""Rank 0's side of the plan: what it says, and what it does when no rank listens."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from msx_backend.parallel import leader as module
from msx_backend.parallel.leader import Leader
from msx_protocol import FrameReader, Plan, PlanCall, PlanEnd, PlanStep, decode_headers
from msx_sdk.request import Headers, InferenceRequest, Part
from tests.backend.parallel.ranks import WATCHDOG, Gone, Rank
from tests.frames import fed


class Bench:
    """A leader of two, whose plans the test reads."""

    def __init__(self, input_ranks: int) -> None:
        pairs = [socket.socketpair() for _ in range(2)]
        self.ours, self.others = [a for a, _ in pairs], [b for _, b in pairs]
        self.rank = Rank(0, lambda rank, data, context: [])
        self.rank.jobs.deferred = True
        self.leader = Leader(self.ours, input_ranks, self.rank.jobs, self.rank.replies)

    def heard(self, rank: int) -> list[tuple[Any, bytes]]:
        """Messages to this rank since the last look."""
        sock, reader = self.others[rank - 1], FrameReader[Any](Plan)
        sock.setblocking(False)
        frames: list[tuple[Any, bytes]] = []
        try:
            while data := sock.recv(1 << 16):
                frames += fed(reader, data)
        except BlockingIOError:
            return frames
        return frames

    def close(self) -> None:
        for sock in (*self.ours, *self.others):
            sock.close()
        self.rank.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(2)
    yield made
    made.close()


def request(number: int, body: bytes = b"x") -> InferenceRequest:
    return InferenceRequest(f"id-{number}", {"body": Part(body, "text/plain")}, number=number, deadline=1e12)


def test_a_fields_content_type_is_not_a_header_of_the_plan(bench: Bench) -> None:
    wanted = InferenceRequest("id-1", {}, Headers({"X-A": "1", "body": {"content-type": "text/plain"}}), number=1)
    bench.leader.begin([wanted])
    ((plan, _),) = bench.heard(1)
    assert decode_headers(plan.requests[0].headers) == [("X-A", "1")]


def test_a_call(bench: Bench) -> None:
    """Rank 1 is of the first stage, rank 2 is not."""
    bench.leader.begin([request(1, b"one"), request(2, b"two")])
    ((whole, body),), ((empty, nothing),) = bench.heard(1), bench.heard(2)
    assert body == b"onetwo"
    assert nothing == b""
    assert [[field.size for field in head.fields] for head in whole.requests] == [[3], [3]]
    assert [(head.number, head.id, head.fields) for head in empty.requests] == [(1, "id-1", []), (2, "id-2", [])]
    assert (whole.call, whole.cancelled, whole.warmup) == (empty.call, empty.cancelled, empty.warmup) == (1, [], False)
    assert whole.requests[0].timeout > 1e11


def test_calls_are_numbered(bench: Bench) -> None:
    for _ in range(3):
        bench.leader.begin([request(1)])
        bench.leader.end(None)
    assert [plan.call for plan, _ in bench.heard(1)] == [1, 2, 3]


def test_steps(bench: Bench) -> None:
    bench.leader.begin([request(1)])
    assert bench.leader.proceed(True)
    assert not bench.leader.proceed(False)
    bench.leader.end(None)
    assert [plan for plan, _ in bench.heard(2)][1:] == [PlanStep(1, True, []), PlanStep(1, False, [])]


def test_the_end_of_a_stream_is_told(bench: Bench) -> None:
    bench.leader.begin([request(1)])
    bench.leader.proceed(True)
    bench.leader.end(None)
    bench.leader.close()
    assert [plan for plan, _ in bench.heard(1)][1:] == [PlanStep(1, True, []), PlanStep(1, False, []), PlanEnd()]


def test_a_cancel_counts_from_the_next_plan_on(bench: Bench) -> None:
    jobs, requests = bench.rank.jobs, [request(1), request(2)]
    jobs._held = {one.number: one for one in requests}
    bench.leader.begin(requests)
    jobs.cancel([2])
    assert not requests[1].cancelled
    assert bench.leader.proceed(True)
    assert requests[1].cancelled
    jobs.cancel([1])
    assert not bench.leader.proceed(True), "no rank is left"
    assert [plan.cancelled for plan, _ in bench.heard(1)] == [[], [2], [1, 2]]


def test_a_cancel_before_the_call_is_told_with_it(bench: Bench) -> None:
    requests = [request(1), request(2)]
    bench.rank.jobs._held = {one.number: one for one in requests}
    bench.rank.jobs.cancel([1])
    bench.leader.begin(requests)
    assert [one.cancelled for one in requests] == [True, False]
    assert [plan.cancelled for plan, _ in bench.heard(2)] == [[1]]


def test_warm_up_is_said(bench: Bench) -> None:
    with bench.leader.warm_up():
        bench.leader.begin([InferenceRequest.of_data("warmup-0", {"body": object()})])
    ((plan, body),) = bench.heard(1)
    assert isinstance(plan, PlanCall)
    assert (plan.warmup, plan.requests[0].id, body) == (True, "warmup-0", b"")


@pytest.mark.parametrize("act", ["begin", "proceed", "end", "close"])
def test_a_rank_that_is_gone_is_left_to_the_frontend(bench: Bench, act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must be no error that a handler could see, or that would be taken for one of the request."""

    def wait(gone: str) -> None:
        raise Gone(gone)

    monkeypatch.setattr(module, "wait_for_the_end", wait)
    if act != "begin":
        bench.leader.begin([request(1)])
    if act == "end":
        bench.leader.proceed(True)
    bench.others[1].close()
    acts = {
        "begin": lambda: bench.leader.begin([request(1)]),
        "proceed": lambda: bench.leader.proceed(True),
        "end": lambda: bench.leader.end(None),
        "close": bench.leader.close,
    }
    with pytest.raises(Gone, match=r"^rank 2$"):
        acts[act]()


def test_it_waits_for_a_rank_that_is_slow_to_read(bench: Bench) -> None:
    """A large plan does not fit the socket: it is taken in pieces, and nothing of it is lost."""
    thread = threading.Thread(target=bench.leader.begin, args=([request(1, b"x" * 5_000_000)],))
    thread.start()
    sock, reader, frames = bench.others[0], FrameReader[Any](Plan), list[Any]()
    sock.settimeout(WATCHDOG)
    while not frames:
        frames += fed(reader, sock.recv(1 << 12))
    thread.join(WATCHDOG)
    assert len(frames[0][1]) == 5_000_000
