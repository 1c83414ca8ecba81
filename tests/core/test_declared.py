"""Bodies and replies of a service that says what they are, whatever its clients state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from msx_core.declared import ENCODERS, declared, event
from msx_core.packed import PACKED, pack
from msx_sdk import Context, Handler, InvalidInput, ModelInfo, PredictionError
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.runner import Runner
from msx_sdk.testing import LocalModel
from tests.core.recording import LAST, Sink

JSON, MSGPACK, RAW, EVENTS = "application/json", "application/msgpack", "application/octet-stream", "text/event-stream"


def test_how_each_kind_arrives() -> None:
    packed = msgspec.msgpack.encode({"a": b"\xff"})
    assert declared("body", packed, MSGPACK) == {"a": b"\xff"}
    assert declared("body", b'{"a": 1}', JSON) == {"a": 1}
    assert declared("body", b"a=1", RAW) == bytearray(b"a=1")
    assert declared("body", pack([1.5]), PACKED) == [1.5]


@pytest.mark.parametrize(
    ("data", "kind", "sentence"),
    [
        (b"\xc1", MSGPACK, r"body \(application/msgpack\) is not valid MessagePack: "),
        (b"", MSGPACK, r"body \(application/msgpack\) is not valid MessagePack: it is empty"),
        (b"{", JSON, r"body \(application/json\) is not valid JSON: line 1"),
    ],
)
def test_what_cannot_be_read_is_refused(data: bytes, kind: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        declared("body", data, kind)


@pytest.mark.parametrize(
    ("kind", "value", "body"),
    [
        ("json", {"a": [1, None]}, b'{"a":[1,null]}'),
        ("json", "text", b'"text"'),
        ("json", True, b"true"),
        ("json", 1 << 70, b"1180591620717411303424"),
        ("msgpack", "text", b"\xa4text"),
        ("msgpack", b"\xff", b"\xc4\x01\xff"),
        ("msgpack", memoryview(b"\xff"), b"\xc4\x01\xff"),
        ("raw", b"\xff", b"\xff"),
        ("raw", "text", b"text"),
        ("events", "one\ntwo\r\nthree", b"data: one\ndata: two\ndata: three\n\n"),
        ("events", "", b"data: \n\n"),
        ("events", {"a": 1}, b'data: {"a":1}\n\n'),
    ],
)
def test_how_each_kind_leaves(kind: Any, value: Any, body: bytes) -> None:
    assert ENCODERS[kind](value) == body


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        ("json", b"x", "replies: json: bytes are not a value of JSON"),
        ("json", object(), "has no JSON form"),
        ("msgpack", 1 << 70, "replies: msgpack: can't serialize ints"),
        ("raw", {"a": 1}, "replies: raw: it takes bytes or text, not dict"),
    ],
)
def test_a_value_without_such_a_form_is_refused(kind: Any, value: Any, sentence: str) -> None:
    with pytest.raises(PredictionError, match=sentence):
        ENCODERS[kind](value)


def test_an_event_with_a_name() -> None:
    assert event("broken", "error") == b"event: error\ndata: broken\n\n"


class Sees(Handler):
    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.calls: list[Any] = []

    def inference(self, inputs: Any) -> Any:
        self.calls += inputs
        return [row["body"] for row in inputs]


def asked(body: bytes, stated: str | None, accept: str = "", operation: str = "") -> InferenceRequest:
    return InferenceRequest("r", {"body": Part(body, stated)}, Headers({"accept": accept}), operation=operation)


def run(handler: Any, request: InferenceRequest, **config: Any) -> Sink:
    sink = Sink()
    with LocalModel(handler, config=config) as model:
        Runner(model.handler, Context(ModelInfo("m", config=config))).run([request], sink)
    return sink


@pytest.mark.parametrize("operation", ["", "method:"])
def test_a_handler_is_given_what_was_declared(operation: str) -> None:
    """By the content type that the server tells it; without the key MessagePack arrives as bytes."""
    body = msgspec.msgpack.encode([1])
    sink = run(Sees, asked(body, MSGPACK, operation=operation), bodies="msgpack")
    assert sink.events["r"] == [b"[\n  1\n]", LAST]
    assert run(Sees, asked(body, MSGPACK, operation=operation)).events["r"] == [body, LAST]


@pytest.mark.parametrize("operation", ["", "method:"])
def test_a_reply_is_what_was_declared(operation: str) -> None:
    """By the `accept` that the server tells it, else by the key."""
    for accept in ("", "*/*", MSGPACK):
        sink = run(Sees, asked(b'"a"', JSON, accept, operation), bodies="json", replies="msgpack")
        assert sink.events["r"] == [b"\xa1a", LAST]
        assert sink.heads["r"][0].headers == [("content-type", MSGPACK)]
    sink = run(Sees, asked(b'"a"', JSON, JSON, operation), bodies="json", replies="msgpack")
    assert sink.events["r"] == [b'"a"', LAST]


def test_a_value_for_the_next_stage_stays_as_it_is() -> None:
    sink = run(Sees, asked(b'"a"', JSON, operation="packed:"), bodies="json", replies="json")
    assert sink.events["r"] == [pack("a"), LAST]


def test_an_error_that_a_handler_sets_has_no_declared_form() -> None:
    class Refuses(Handler):
        def inference(self, inputs: Any) -> Any:
            self.context.set_response_status(418)
            return [{"why": "tea"}]

    sink = run(Refuses, asked(b"1", JSON), bodies="json", replies="msgpack")
    assert sink.events["r"] == [b'{\n  "why": "tea"\n}', LAST]
    assert sink.heads["r"][0].headers == [("content-type", JSON)]


def test_events_begin_at_once_and_end_without_an_event_of_their_own() -> None:
    class Streams(Handler):
        def handle(self, data: Any, context: Context) -> Any:
            yield ["a"]
            yield ["b"]

    sink = run(Streams, asked(b"1", JSON), bodies="json", replies="events")
    assert sink.events["r"] == [b"data: a\n\n", b"data: b\n\n", b"", LAST]
    assert sink.heads["r"][0].has_events


@dataclass
class Query:
    text: str


class Typed(Handler):
    example = Query("warm")

    def inference(self, inputs: list[Query]) -> list[Query]:
        return [Query(one.text.upper()) for one in inputs]


def test_types_and_a_test_without_a_server() -> None:
    with LocalModel(Typed, config={"bodies": "msgpack", "replies": "msgpack"}) as model:
        (reply,) = model.predict([{"text": "sea"}])
        (whole,) = model.predict([msgspec.msgpack.encode({"text": "sea"})])
    assert reply.msgpack() == whole.msgpack() == {"text": "SEA"}


@pytest.mark.parametrize(
    ("kind", "stated", "body", "sentence"),
    [
        ("msgpack", MSGPACK, b'{"text": "sea"}', "This service takes MessagePack (bodies:), whatever type is stated."),
        ("json", JSON, b"\x81\xa1", "This service takes JSON (bodies:), whatever type is stated."),
        (None, JSON, b"\x81\xa1", "Send application/json or application/msgpack."),
    ],
)
def test_another_form_is_told_what_helps(kind: Any, stated: str, body: bytes, sentence: str) -> None:
    sink = run(Typed, asked(body, stated), **({"bodies": kind} if kind else {}))
    assert sink.failure("r").status == 400
    assert sink.failure("r").message.endswith(sentence)
