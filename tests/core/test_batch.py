from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from msx_core.batch import Batch, InvalidResult
from msx_core.failures import RequestFailure
from msx_core.reply_head import JSON_TYPE, ReplyHead
from msx_core.results import Last
from msx_sdk.errors import InvalidInput
from msx_sdk.request import InferenceRequest
from tests.core.recording import LAST, Sink, requests


def batch_of(n: int) -> tuple[Batch, Sink]:
    sink = Sink()
    return Batch(requests(*[b""] * n), sink), sink


def test_chunks_then_the_end() -> None:
    batch, sink = batch_of(2)
    batch.send([b"a", None])
    batch.send([b"b", b"c"])
    batch.finish([b"d", b"e"])
    assert sink.events == {"r0": [b"a", b"b", b"d", LAST], "r1": [b"c", b"e", LAST]}


def test_the_head_leaves_once_with_the_first_chunk() -> None:
    batch, sink = batch_of(1)
    batch.head(0).status = 201
    batch.send([b"a"])
    batch.finish([b"b"])
    assert [head.status for head in sink.heads["r0"]] == [201]


def test_nothing_follows_the_end_of_a_request() -> None:
    batch, sink = batch_of(2)
    batch.send([Last(b"done"), InvalidInput("no")])
    batch.send([b"late", b"late"])
    batch.finish([b"late", b"late"])
    batch.fail(ValueError("late"))
    batch.close()
    assert sink.events["r0"] == [b"done", LAST]
    assert sink.failure("r1").status == 400
    assert len(sink.events["r1"]) == 1


def test_a_closed_stream_ends_with_an_empty_chunk() -> None:
    batch, sink = batch_of(1)
    batch.send([b"a"])
    batch.close()
    assert sink.events["r0"] == [b"a", b"", LAST]


def test_offered_chunks_leave_together() -> None:
    batch, sink = batch_of(1)
    assert batch.offer(b"a")
    assert batch.offer(b"b")
    assert (sink.events, sink.flushed_after) == ({"r0": [b"a", b"b"]}, [])
    assert len(sink.heads["r0"]) == 1


def test_what_is_offered_to_a_slow_client_is_not_sent() -> None:
    batch, sink = batch_of(1)
    [request] = batch.requests
    request.credit = request.sent = 10
    assert not batch.offer(b"a")
    assert not sink.events
    request.grant(11)
    assert batch.offer(b"a")
    assert sink.events == {"r0": [b"a"]}


def test_what_is_offered_to_a_client_that_left_is_dropped() -> None:
    batch, sink = batch_of(1)
    batch.requests[0].cancelled = True
    assert batch.offer(b"a")
    assert not sink.events


def test_a_cancelled_request_gets_nothing_more() -> None:
    batch, sink = batch_of(2)
    batch.requests[0].cancelled = True
    batch.send([b"a", b"a"])
    batch.finish([ValueError("b"), b"b"])
    assert sink.events == {"r1": [b"a", b"b", LAST]}


def test_deserted_when_everyone_has_left_or_ended() -> None:
    batch, _ = batch_of(2)
    batch.requests[0].cancelled = True
    assert not batch.deserted
    batch.send([None, Last(b"")])
    assert batch.deserted


def test_a_value_that_cannot_be_encoded_fails_its_own_request() -> None:
    batch, sink = batch_of(2)
    batch.finish([object(), b"fine"])
    assert sink.failure("r0").status == 503
    assert "Unsupported model output data type: object" in sink.failure("r0").message
    assert sink.events["r1"] == [b"fine", LAST]


def test_a_head_that_http_does_not_allow_fails_its_own_request() -> None:
    batch, sink = batch_of(3)
    batch.head(0).set_header("X A", "1")
    batch.head(1).set_status(99, "")
    batch.finish([b"lost", b"lost", b"fine"])
    failures = [sink.failure(id) for id in ("r0", "r1")]
    assert [(one.status, one.message) for one in failures] == [(500, batch.head(n).refused) for n in (0, 1)]
    assert sink.events["r2"] == [b"fine", LAST]


def test_a_stream_with_such_a_head_does_not_begin_and_one_that_has_begun_goes_on() -> None:
    batch, sink = batch_of(2)
    batch.head(0).set_header("X A", "1")
    batch.send([b"a", b"a"])
    batch.head(1).set_header("X A", "1")
    batch.finish([b"b", b"b"])
    assert [type(event) for event in sink.events["r0"]] == [RequestFailure]
    assert sink.events["r1"] == [b"a", b"b", LAST]


class Number:
    def tolist(self) -> int:
        return 3


@pytest.mark.parametrize("value", [{"a": 1}, [1], (1, 2), 3, 1.5, True, None, Number()])
def test_what_the_server_makes_json_of_says_so(value: Any) -> None:
    batch, sink = batch_of(1)
    batch.finish([value])
    assert sink.heads["r0"] == [ReplyHead(headers=[JSON_TYPE])]


@pytest.mark.parametrize("value", [b"{}", "{}", bytearray(b"{}"), memoryview(b"{}"), ""])
def test_bytes_and_texts_say_nothing_whatever_they_hold(value: Any) -> None:
    batch, sink = batch_of(1)
    batch.finish([value])
    assert sink.heads["r0"] == [ReplyHead()]


def test_a_stream_says_nothing() -> None:
    batch, sink = batch_of(2)
    batch.send([{"a": 1}, None])
    batch.finish([{"b": 1}, {"b": 1}])
    assert [sink.heads[id][0].headers for id in ("r0", "r1")] == [None, [JSON_TYPE]]
    batch, sink = batch_of(1)
    batch.close()
    assert sink.heads["r0"] == [ReplyHead()]


def test_the_handlers_own_head_is_not_changed() -> None:
    batch, sink = batch_of(2)
    batch.head(0).set_header("Content-Type", "text/x")
    batch.head(1).set_status(201, "Made")
    batch.finish([{}, {}])
    assert [sink.heads[id][0] for id in ("r0", "r1")] == [
        ReplyHead(headers=[("Content-Type", "text/x")]),
        ReplyHead(201, "Made", [JSON_TYPE]),
    ]
    assert batch.head(1).headers is None


def test_an_operations_messages_have_no_type() -> None:
    sink = Sink()
    Batch([InferenceRequest("r0", {}, operation="generate")], sink).finish([{}])
    assert sink.heads["r0"] == [ReplyHead()]


@pytest.mark.parametrize("values", ["ab", b"ab", {"a": 1}, None, 3, {1, 2}])
def test_results_are_a_list(values: Any) -> None:
    batch, sink = batch_of(2)
    with pytest.raises(InvalidResult, match=f"Invalid model predict output.*not {type(values).__name__}"):
        batch.finish(values)
    assert sink.events == {}


@pytest.mark.parametrize("values", [[], [1], [1, 2, 3]])
def test_results_are_as_many_as_requests(values: list[int]) -> None:
    batch, _ = batch_of(2)
    with pytest.raises(InvalidResult, match=f"mismatched: 2 requests, {len(values)} responses"):
        batch.send(values)


class Careless:
    """A sink that loses chunks when two threads are in it, and remembers where the heads came."""

    def __init__(self) -> None:
        self.count, self.heads_at = 0, list[int]()

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        count = self.count
        if head is not None:
            self.heads_at.append(count)
        time.sleep(0)  # lets the other threads run
        self.count = count + 1

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
        raise AssertionError(failure)

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None: ...

    def flush(self) -> None: ...


def test_threads_may_send_at_once() -> None:
    sink = Careless()
    batch = Batch(requests(b""), sink)

    def send_hundred() -> None:
        for _ in range(100):
            batch.send([b"x"])

    threads = [threading.Thread(target=send_hundred) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    batch.finish([b"y"])
    assert sink.count == 801
    assert sink.heads_at == [0]


def test_a_request_that_ends_while_a_chunk_is_encoded_gets_no_more() -> None:
    batch, sink = batch_of(1)

    class EndsMeanwhile:
        def tolist(self) -> list[int]:
            batch.finish([b"end"])
            return [1]

    batch.send([EndsMeanwhile()])
    assert sink.events == {"r0": [b"end", LAST]}


def test_values_sent_at_once_leave_at_once() -> None:
    batch, sink = batch_of(2)
    batch.send([b"a", b"b"])
    batch.send([b"c", None])
    batch.finish([b"d", b"d"])
    assert sink.flushed_after == [2, 3]


def test_a_reply_begins_once() -> None:
    """Also where its head leaves before its first chunk, from another thread."""
    sink = Sink()
    batch = Batch(requests(b"", b""), sink)
    batch.head(0).set_header("x-own", "1")
    batch.begin_stream(0)
    batch.begin_stream(0)
    assert (batch.awaits(0), batch.awaits(1), batch.anything_sent) == (False, True, True)
    batch.finish([b"a", b"b"])
    assert dict(sink.events) == {"r0": [b"", b"a", LAST], "r1": [b"b", LAST]}
    assert [len(heads) for heads in sink.heads.values()] == [1, 1]
    batch.begin_stream(1)
    assert sink.events["r1"] == [b"b", LAST]
