from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from msx_core.batch import Batch, current_request_ids
from msx_sdk.context import Context, ModelInfo
from msx_sdk.request import Headers, InferenceRequest
from tests.core.recording import LAST, Sink, requests


def bound(n: int = 2, info: ModelInfo | None = None) -> tuple[Context, Batch, Sink]:
    sink = Sink()
    batch = Batch(requests(*[b""] * n), sink)
    return Context(info or ModelInfo("m")).for_batch(batch), batch, sink


def test_the_constant_part() -> None:
    info = ModelInfo(
        "m", "2.0", Path("/models/m"), {"model": {}}, {"topk": 3}, 8, device_id=1, rank=2, local_rank=2, world_size=4
    )
    context = Context(info)
    assert (context.model_name, context.model_version, context.model_dir) == ("m", "2.0", Path("/models/m"))
    assert (context.rank, context.local_rank, context.world_size, context.device_id) == (2, 2, 4, 1)
    assert context.model_yaml_config == {"topk": 3}
    assert context.manifest == {"model": {}}


def test_torchserves_system_properties() -> None:
    properties = Context(ModelInfo("m", model_dir=Path("/models/m"), batch_size=8, device_id=1)).system_properties
    assert properties["model_dir"] == "/models/m"
    assert properties["gpu_id"] == properties["npu_id"] == 1
    assert properties["batch_size"] == 8
    assert properties["limit_max_image_pixels"] is True
    assert properties["server_name"] == "MMS"


TORCHSERVES = """
    model_name manifest system_properties model_yaml_config request_ids request_processor metrics cl_socket
    stopping_criteria header_key_sequence_id header_key_sequence_start header_key_sequence_end get_request_id
    get_request_header get_all_request_header get_sequence_id set_response_content_type get_response_content_type
    set_response_header get_response_headers set_response_status get_response_status set_all_response_status
"""


def test_it_has_all_that_torchserves_has() -> None:
    context, _, _ = bound()
    assert [name for name in TORCHSERVES.split() if not hasattr(context, name)] == []


def test_requests_are_found_by_their_place() -> None:
    context, batch, _ = bound()
    batch.requests[1].headers = Headers([("X-User", "ann")])
    batch.requests[1].deadline = 12.5
    batch.requests[1].cancelled = True
    assert context.request_ids == {0: "r0", 1: "r1"}
    assert context.get_request_id() == "r0"
    assert context.get_request_header(1, "x-user") == "ann"
    assert context.get_request_header(0, "x-user") is None
    assert context.get_all_request_header(1) == {"X-User": "ann"}
    assert (context.deadline(0), context.deadline(1)) == (None, 12.5)
    assert (context.cancelled(0), context.cancelled(1)) == (False, True)


def test_outside_of_a_call_there_is_no_request() -> None:
    with pytest.raises(RuntimeError, match="only known while handle"):
        Context(ModelInfo("m")).get_request_id()


def test_responses_are_set_per_request() -> None:
    context, batch, _ = bound()
    context.set_response_status(202, "Later", 1)
    context.set_response_content_type(1, "text/csv")
    context.set_response_header(1, "X-Model", "m")
    assert context.get_response_status(1) == (202, "Later")
    assert context.get_response_content_type(1) == "text/csv"
    assert context.get_response_headers(1) == {"content-type": "text/csv", "X-Model": "m"}
    assert context.get_response_status(0) == (200, "")
    assert context.get_response_headers(0) == {}
    context.set_all_response_status(203, "All")
    assert [batch.head(idx).status for idx in range(2)] == [203, 203]


def test_a_header_set_twice_is_replaced_in_any_case() -> None:
    context, _, _ = bound()
    context.set_response_header(0, "Content-Type", "a/b")
    context.set_response_content_type(0, "c/d")
    assert context.get_response_headers(0) == {"content-type": "c/d"}


def test_what_http_does_not_allow_is_kept_for_the_reply_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    context, batch, _ = bound()
    context.set_response_header(1, "X A", "1")
    context.set_response_status(99, idx=1)
    context.request_processor[0].report_status(700)
    assert "'X A'" in batch.head(1).refused
    assert "700" in batch.head(0).refused
    assert [record.getMessage() for record in caplog.records] == [batch.head(1).refused, batch.head(0).refused]
    assert {record.levelname for record in caplog.records} == {"ERROR"}


def test_header_values_become_text() -> None:
    context, batch, _ = bound()
    number: Any = 5
    context.set_response_header(0, "X-Count", number)
    assert batch.head(0).headers == [("X-Count", "5")]


def test_the_handlers_own_example_is_known() -> None:
    context = Context(ModelInfo("m"))
    examples = [InferenceRequest.of_data("warmup-0", {"body": 1}), InferenceRequest("a", {})]
    context = context.for_batch(Batch(examples, None))
    assert (context.is_example(0), context.is_example(1)) == (True, False)


def test_a_fields_content_type_is_among_the_headers() -> None:
    """TorchServe: an entry by the field's name."""
    headers = Headers({"X-A": "1", "body": {"content-type": "text/plain"}})
    context = Context(ModelInfo("m")).for_batch(Batch([InferenceRequest("a", {}, headers)], None))
    assert context.get_request_header(0, "body") == {"content-type": "text/plain"}
    assert context.get_all_request_header(0) == {"X-A": "1", "body": {"content-type": "text/plain"}}
    headers["ts_request_sequence_id"] = {"content-type": "text/plain"}
    assert context.get_sequence_id(0) == "", "a form field may have the same name"


def test_sending() -> None:
    context, batch, sink = bound()
    context.send([b"a", None])
    batch.finish([b"b", b"c"])
    assert sink.events == {"r0": [b"a", b"b", LAST], "r1": [b"c", LAST]}


def test_a_call_keeps_its_batch_when_the_next_one_begins() -> None:
    sink = Sink()
    base = Context(ModelInfo("m"))
    first = base.for_batch(old := Batch(requests(b""), sink))
    old.finish([b"done"])
    (request,) = requests(b"")
    request.id = "next"
    base.for_batch(Batch([request], sink))
    first.send([b"late"])
    assert first.request_ids == {0: "r0"}
    assert base.request_ids == {0: "next"}
    assert sink.events == {"r0": [b"done", LAST]}


def test_what_a_handler_keeps_on_the_context_is_there_at_the_next_call() -> None:
    base: Any = Context(ModelInfo("m"))
    base.cache = {}
    call: Any = base.for_batch(Batch(requests(b""), Sink()))
    call.cache["r0"] = 1
    call.stopping_criteria = [None]
    again: Any = base.for_batch(Batch(requests(b""), Sink()))
    assert again.cache == {"r0": 1}
    assert again.stopping_criteria == [None]


def test_calls_that_run_at_once_have_attributes_of_their_own() -> None:
    base = Context(ModelInfo("m"))
    one = base.for_call(Batch(requests(b""), Sink()))
    other = base.for_call(Batch(requests(b""), Sink()))
    one.stopping_criteria = [None]
    assert other.stopping_criteria is None
    assert other.metrics is one.metrics is base.metrics


def test_log_lines_carry_the_request_ids_from_any_thread(caplog: pytest.LogCaptureFixture) -> None:
    context, _, _ = bound()
    caplog.set_level(logging.INFO)
    thread = threading.Thread(target=lambda: context.logger.info("working"))
    thread.start()
    thread.join()
    (record,) = caplog.records
    assert record.name == "msx.handler.m"
    assert record.__dict__["request_id"] == "r0,r1"


def test_run_uses_the_model_thread_and_takes_the_request_ids_along() -> None:
    async def call() -> tuple[str, str]:
        context = Context(ModelInfo("m"), model_thread=pool).for_call(Batch(requests(b""), Sink()))
        return await context.run(lambda tail: (threading.current_thread().name + tail, current_request_ids.get()), "!")

    with ThreadPoolExecutor(1, thread_name_prefix="model") as pool:
        assert asyncio.run(call()) == ("model_0!", "r0")


def test_a_context_of_one_request() -> None:
    batch = Batch([InferenceRequest("only", {})], Sink())
    context = Context(ModelInfo("m")).for_call(batch)
    assert (context.get_request_id(), context.cancelled(), context.deadline()) == ("only", False, None)


def test_the_sequence_of_a_request() -> None:
    context, batch, _ = bound()
    batch.requests[1].headers = Headers([("ts_request_sequence_id", "seq-7")])
    assert (context.get_sequence_id(0), context.get_sequence_id(1)) == ("", "seq-7")


def test_torchserves_request_processor() -> None:
    context, batch, _ = bound()
    batch.requests[1].headers = Headers([("X-User", "ann")])
    first, second = context.request_processor
    assert first.get_request_properties() == {}
    assert second.get_request_property("X-User") == "ann"
    second.report_status(202, "Later")
    second.add_response_property("X-Model", "m")
    assert context.get_response_status(1) == (202, "Later")
    assert (second.get_response_status_code(), second.get_response_status_phrase()) == (202, "Later")
    assert second.get_response_headers() == {"X-Model": "m"}
    assert (second.get_response_header("X-Model"), first.get_response_header("X-Model")) == ("m", None)
    assert first.get_response_status_code() == 200
