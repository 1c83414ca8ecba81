from __future__ import annotations

import pytest

from msx_core.batch import Batch
from msx_sdk import send_intermediate_predict_response as send
from msx_sdk.context import Context, ModelInfo
from tests.core.recording import Sink, requests


def bound() -> tuple[Context, Batch, Sink]:
    sink = Sink()
    batch = Batch(requests(b"", b""), sink)
    return Context(ModelInfo("m")).for_batch(batch), batch, sink


def test_one_chunk_per_request() -> None:
    context, _, sink = bound()
    send(["a", "b"], context.request_ids, "Intermediate", 200, context)
    assert sink.events == {"r0": [b"a"], "r1": [b"b"]}


def test_some_of_the_requests() -> None:
    context, _, sink = bound()
    send(["b"], {1: "r1"}, "Intermediate", 200, context)
    assert sink.events == {"r1": [b"b"]}


def test_the_code_counts_unless_the_handler_set_a_status() -> None:
    context, _, sink = bound()
    context.set_response_status(201, "Made", 0)
    send(["a", "b"], context.request_ids, "Partial", 206, context)
    assert [(sink.heads[id][0].status, sink.heads[id][0].phrase) for id in ("r0", "r1")] == [
        (201, "Made"),
        (206, "Partial"),
    ]


def test_as_many_values_as_requests() -> None:
    context, _, sink = bound()
    with pytest.raises(ValueError, match="shorter"):
        send(["a"], context.request_ids, "", 200, context)
    assert sink.events == {}


def test_what_is_meant_for_an_earlier_batch_is_dropped() -> None:
    context, _, sink = bound()
    send(["stale", "fresh"], {0: "of an earlier batch", 1: "r1"}, "", 500, context)
    assert sink.events == {"r1": [b"fresh"]}
    assert context.get_response_status(0)[0] == 200


def test_nothing_for_cancelled_requests() -> None:
    context, batch, sink = bound()
    batch.requests[0].cancelled = True
    send(["a", "b"], context.request_ids, "", 200, context)
    assert sink.events == {"r1": [b"b"]}
