"""Reading ahead of the handler: malformed JSON fails alone and before any call, tensors fit their signature."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from msx_core.continuous import ContinuousRunner
from msx_core.packed import PACKED, pack, unpack
from msx_core.reading import RequestReader
from msx_core.resolve import resolve_object
from msx_sdk import Context, Handler, InvalidInput, ModelInfo
from msx_sdk.kserve import Signature, TensorMeta
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.runner import AsyncRunner, Runner
from tests.core.recording import LAST, Sink

JSON = "application/json"
MALFORMED = b'{"a": 1'
REFUSED = "body (application/json) is not valid JSON: line 1, column 8: expecting ',' delimiter"


def shown(value: Any) -> Any:
    return [type(value).__name__, value.decode("latin-1") if isinstance(value, bytearray) else value]


class Sees(Handler):
    """Remembers what it was given, and answers with it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def inference(self, inputs: Any) -> Any:
        self.calls.append([{name: shown(value) for name, value in row.items()} for row in inputs])
        return ["seen"] * len(inputs)


class TorchServes:
    """Has no base of ours."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def initialize(self, context: Context) -> None: ...

    def handle(self, data: Any, context: Context) -> Any:
        self.calls.append([{name: shown(value) for name, value in row.items()} for row in data])
        return ["seen"] * len(data)


def asked(*bodies: bytes, stated: str | None = JSON) -> list[InferenceRequest]:
    return [InferenceRequest(f"r{n}", {"body": Part(body, stated)}) for n, body in enumerate(bodies)]


def run(handler: Any, batch: list[InferenceRequest], config: Any = None, **info: Any) -> Sink:
    sink = Sink()
    context = Context(ModelInfo("m", config=config or {}, **info))
    Runner(resolve_object(handler), context, isolate=False).run(batch, sink)
    return sink


def test_malformed_json_fails_alone_and_before_the_handler() -> None:
    handler = Sees()
    sink = run(handler, asked(b"[1]", MALFORMED, b"[2]"))
    failure = sink.failure("r1")
    assert (failure.status, failure.message, failure.traceback) == (400, REFUSED, "")
    assert handler.calls == [[{"body": ["list", [1]]}, {"body": ["list", [2]]}]]
    assert sink.events["r0"] == sink.events["r2"] == [b"seen", LAST]


def test_no_call_where_nothing_is_left() -> None:
    handler = Sees()
    run(handler, asked(MALFORMED))
    assert handler.calls == []


def test_a_part_of_a_form_is_named() -> None:
    handler = Sees()
    batch = [InferenceRequest("r", {"good": Part(b"1", JSON), "options": Part(b"{", "Application/Json")})]
    assert run(handler, batch).failure("r").message.startswith("options (Application/Json) is not valid JSON: line 1")
    assert handler.calls == []


def test_every_spelling_is_decoded() -> None:
    handler = Sees()
    run(handler, [*asked(b"[1]", stated="Application/JSON"), *asked(b"[2]", stated="application/ld+json")])
    assert handler.calls == [[{"body": ["list", [1]]}, {"body": ["list", [2]]}]]


@pytest.mark.parametrize("stated", ["", None, "application/octet-stream", "text/plain; charset=x"])
def test_what_does_not_say_json_is_not_read_as_such(stated: str | None) -> None:
    handler = Sees()
    assert run(handler, asked(MALFORMED, stated=stated)).events["r0"] == [b"seen", LAST]


def test_handlers_of_torchserve_see_the_bytes() -> None:
    handler = TorchServes()
    run(handler, [*asked(MALFORMED), *asked(b"[1]", stated="Application/JSON")])
    assert handler.calls == [[{"body": ["bytearray", '{"a": 1']}, {"body": ["bytearray", "[1]"]}]]


def test_the_yaml_goes_first_both_ways() -> None:
    ours, theirs = Sees(), TorchServes()
    run(ours, asked(MALFORMED), {"jsonBodies": "lenient"})
    assert ours.calls == [[{"body": ["bytearray", '{"a": 1']}]]
    assert run(theirs, asked(MALFORMED), {"jsonBodies": "strict"}).failure("r0").status == 400
    assert theirs.calls == []


def test_a_key_without_a_value_is_not_there() -> None:
    assert run(Sees(), asked(MALFORMED), {"jsonBodies": None}).failure("r0").status == 400


def test_a_class_may_say_so_itself() -> None:
    class Lenient(Sees):
        json_bodies = "lenient"

    handler = Lenient()
    run(handler, asked(MALFORMED))
    assert handler.calls == [[{"body": ["bytearray", '{"a": 1']}]]


def test_where_nothing_is_decoded_nothing_is_refused() -> None:
    handler = Sees()
    run(handler, asked(MALFORMED), decode_input=False)
    assert handler.calls == [[{"body": ["bytearray", '{"a": 1']}]]


def test_a_batch_that_is_run_again_gets_its_inputs_again() -> None:
    calls: list[Any] = []

    class Spoils(Handler):
        def handle(self, data: Any, context: Context) -> Any:
            calls.append([row.pop("body") for row in data])
            if len(data) > 1:
                raise ValueError("not together")
            return ["alone"]

    sink = Sink()
    batch = asked(b"[1]", b"[2]", stated="Application/JSON")
    Runner(resolve_object(Spoils()), Context(ModelInfo("m"))).run(batch, sink)
    assert calls == [[[1], [2]], [[1]], [[2]]]
    assert sink.events["r1"] == [b"alone", LAST]


def test_an_async_handler() -> None:
    class Async(Handler):
        async def handle(self, data: Any, context: Context) -> Any:
            return [data[0]["body"]]

    sink = Sink()
    runner = AsyncRunner(resolve_object(Async()), Context(ModelInfo("m")))
    for request in asked(b"[1]", MALFORMED):
        asyncio.run(runner.run(request, sink))
    assert sink.events["r0"][-1] == LAST
    assert (sink.failure("r1").status, sink.failure("r1").message) == (400, REFUSED)


def test_continuous_batching_reads_a_request_once() -> None:
    class Counts(Handler):
        def handle(self, data: Any, context: Context) -> Any:
            seen.append(data)
            context.stopping_criteria = [lambda value: len(seen) > 1 for _ in data]
            return ["piece"] * len(data)

    seen: list[Any] = []
    sink = Sink()
    runner = ContinuousRunner(resolve_object(Counts()), Context(ModelInfo("m")))
    runner.run(asked(b"[1]", MALFORMED), sink)
    runner.run(runner.open, sink)
    assert seen == [[{"body": [1]}], [{}]]
    assert sink.failure("r1").status == 400


# -- bodies of predictions that have the shape of KServe v2, of a handler that announces its tensors --

ROWS = Signature((TensorMeta("rows", "FP32", (-1, 3)),))
GOOD = b'{"inputs": [{"name": "rows", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}'
WRONG = GOOD.replace(b"FP32", b"INT8")


class Announces(Sees):
    signature = ROWS

    def tensor_signature(self) -> Signature:
        return self.signature


@pytest.mark.parametrize("config", [{}, {"jsonBodies": "lenient"}])
def test_a_prediction_of_the_protocols_shape_is_held_to_the_signature(config: Any) -> None:
    handler = Announces()
    sink = run(handler, asked(GOOD, WRONG), config)
    assert sink.failure("r1").message == "input 'rows': datatype 'INT8', but the model takes FP32"
    assert [len(call) for call in handler.calls] == [1]


@pytest.mark.parametrize("body", [b'{"inputs": [[1, 2]]}', b'{"inputs": []}', b'{"rows": [1]}', b"[1]", b"3"])
def test_predictions_of_other_shapes_are_the_handlers(body: bytes) -> None:
    assert run(Announces(), asked(body)).events["r0"] == [b"seen", LAST]


def test_a_signature_that_is_only_announced() -> None:
    class Loose(Announces):
        signature = Signature(ROWS.inputs, enforced=False)

    assert run(Loose(), asked(WRONG)).events["r0"] == [b"seen", LAST]


def test_examples_are_not_held_to_it() -> None:
    assert run(Announces(), [InferenceRequest.of_data("r0", {"body": {"inputs": []}})]).events["r0"] == [b"seen", LAST]


def reader() -> RequestReader:
    return RequestReader(resolve_object(Sees()), ModelInfo("m"))


def test_a_request_that_wants_a_packed_reply() -> None:
    request = InferenceRequest("r", {"x": Part(pack([1, "a"]), PACKED)}, operation="packed:")
    reader().read(request)
    assert request.data() == {"x": [1, "a"]}
    assert unpack(request.encode({"y": b"raw"}, 200)) == {"y": b"raw"}


def test_a_packed_field_that_is_broken() -> None:
    with pytest.raises(InvalidInput, match="x is not a value of application/x-msx-packed: Input data was truncated"):
        reader().read(InferenceRequest("r", {"x": Part(b"\x81", PACKED)}, operation="packed:"))
