"""Requests of typed handlers: decoded by content type, each alone; what is wrong with one is said by the path."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from msx_core.packed import PACKED, OneText, pack, unpack
from msx_core.typed.functions import with_types
from msx_sdk import Context, Handler, method
from msx_sdk.request import Headers
from msx_sdk.testing import InferenceRequest, LocalModel, Part, Reply
from tests.core.typed.models import Found, Model, OfDataclass, OfPydantic, OfRows, Point, Query, Rows, of_function

JSON = "application/json"
DEEP = b'{"text": "a", "extra": ' + b"[" * 150 + b"]" * 150 + b"}"


def sent(body: bytes, stated: str | None = JSON, accept: str = "", id: str = "r", operation: str = "") -> Any:
    headers = Headers({"accept": accept} if accept else {})
    return InferenceRequest(id, {"body": Part(body, stated)}, headers, operation=operation)


def answer(handler: Any, *requests: InferenceRequest) -> list[Reply]:
    with LocalModel(handler) as model:
        return model.predict(requests)


def message(handler: Any, request: InferenceRequest) -> tuple[int, str]:
    (reply,) = answer(handler, request)
    assert reply.failure is not None, reply.body
    return reply.status, reply.failure.message


def test_a_handler_gets_objects_and_a_bad_one_fails_alone() -> None:
    handler = OfDataclass()
    bad = sent(b'{"text": "b", "points": [{"x": 1}, {"x": "many"}]}', id="bad")
    first, failed, last = answer(handler, sent(b'{"text": "a", "top": 2}', id="1"), bad, sent(b'{"text": "c"}', id="2"))
    assert handler.calls == [[Query("warm")], [Query("a", 2), Query("c")]]
    assert (first.json(), first.headers) == ({"text": "aa"}, {"content-type": JSON})
    assert last.json() == {"text": "c"}
    assert failed.failure is not None
    assert (failed.status, failed.failure.message) == (
        400,
        'The request does not fit Query: points[1].x: expected `int`, got `str` ("many").',
    )


@pytest.mark.parametrize("handler", [OfDataclass, OfPydantic])
@pytest.mark.parametrize(
    ("body", "stated"),
    [
        (b'{"text": "a"}', JSON),
        (b'{"text": "a"}', "Application/JSON; charset=utf-8"),
        (b'{"text": "a"}', "application/vnd.me+json"),
        (b'{"text": "a"}', ""),
        (b'{"text": "a"}', None),
        (b'{"text": "a", "extra": NaN}', JSON),
        (msgspec.msgpack.encode({"text": "a"}), "application/msgpack"),
        (msgspec.msgpack.encode({"text": "a"}), "application/x-msgpack"),
        (msgspec.msgpack.encode({"text": "a"}), "application/vnd.msgpack"),
    ],
)
def test_forms_of_a_request(handler: Any, body: bytes, stated: str | None) -> None:
    (reply,) = answer(handler, sent(body, stated))
    assert reply.json()["text"] == "a"


@pytest.mark.parametrize(
    ("body", "stated", "status", "words"),
    [
        (b'{"text": 5}', JSON, 400, "text: expected `str`, got `int` (5)."),
        (b'{"text": "a", "top": 0}', JSON, 400, "top: expected `int` >= 1, got 0."),
        (b'{"top": 1}', JSON, 400, "text is missing."),
        (b'{"text": "a", "points": [{}]}', JSON, 400, "points[0].x is missing."),
        (b"[]", JSON, 400, "the body: expected `object`, got `array` ([])."),
        (b"", JSON, 400, "body (application/json) is not valid JSON: it is empty."),
        (b'{"text', "", 400, "body came without a content type and is not valid JSON: line 1, column 2"),
        (b"\x81\xa1", "application/msgpack", 400, "is not valid MessagePack: Input data was truncated."),
        (msgspec.msgpack.encode({"text": msgspec.msgpack.Ext(7, b"")}), "application/msgpack", 400, "extension type 7"),
        (
            msgspec.msgpack.encode({"extra": msgspec.msgpack.Ext(3, b"")}),
            "application/msgpack",
            400,
            "extension type 3",
        ),
        (b"\x81\xa5extra" + b"\x91" * 9000 + b"\x01", "application/msgpack", 400, "it is nested "),
        (DEEP, JSON, 400, "it is nested more than 100 levels deep."),
        (b'{"text": "' + b"a" * 9000 + b'", "top": "' + b"b" * 9000 + b'"}', JSON, 400, "got `str` ("),
        (b"text", "text/plain", 415, "body: this model does not read text/plain; send application/json or application"),
    ],
)
def test_what_is_refused(body: bytes, stated: str, status: int, words: str) -> None:
    got, text = message(OfDataclass, sent(body, stated))
    assert (got, words in text) == (status, True), text
    assert len(text) < 600


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"text": 5, "top": 0}', "text: input should be a valid string, got 5; top: input should be greater than or"),
        (b'{"text": "a", "points": [{"x": 1}, {}]}', "points[1].x is missing."),
        (b'{"text', "is not valid JSON: line 1, column 2"),
        (b'{"text": "a", "points": [' + b"{}," * 2000 + b"{}]}", "2001 of its members do not fit."),
    ],
)
def test_pydantic_says_where(body: bytes, words: str) -> None:
    status, text = message(OfPydantic, sent(body))
    assert (status, words in text) == (400, True), text


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"text": Part(b"5"), "top": Part(b"2")}, {"text": "55"}),
        ({"text": Part(b"a"), "points": Part(b'[{"x": 1}]')}, {"text": "a", "points": [{"x": 1}]}),
        ({"text": Part(b"a")}, {"text": "a"}),
        ({"data": Part(b'{"text": "a"}')}, {"text": "a"}),
        ({"file": Part(b'{"text": "a"}', JSON)}, {"text": "a"}),
        ({"body": Part(pack({"text": "a"}), PACKED)}, {"text": "a"}),
        ({"body": Part(pack({"text": "a", "extra": OneText("b")}), PACKED)}, {"text": "a", "extra": "b"}),
    ],
)
def test_fields_of_forms_and_of_grpc(parts: dict[str, Part], expected: Any) -> None:
    (reply,) = answer(OfDataclass, InferenceRequest("r", parts))
    assert reply.json() == expected


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, "The request is empty: this model takes Query as application/json or application/msgpack."),
        (
            {'{"text": "a"}': Part(b"")},
            "A body that comes as application/x-www-form-urlencoded, which curl and urllib state",
        ),
        ({"text": Part(b"\xff"), "top": Part(b"1")}, "text: expected text, got bytes that are not UTF-8."),
        ({"text": Part(b"a"), "top": Part(b"many")}, 'top: expected `int`, got `str` ("many").'),
    ],
)
def test_fields_that_are_refused(parts: dict[str, Part], words: str) -> None:
    status, text = message(OfDataclass, InferenceRequest("r", parts))
    assert (status, words in text) == (400, True), text


def test_arrays() -> None:
    array = np.arange(4, dtype=np.float32).reshape(2, 2)
    packed = pack({"rowValues": array, "rawBytes": b"\x00\xff"})
    listed, sent_as_it_is = answer(
        OfRows,
        sent(b'{"rowValues": [[0, 1], [2, 3]], "rawBytes": "AP8="}', id="1"),
        sent(packed, "application/msgpack", "application/msgpack", id="2"),
    )
    assert listed.json() == {"rowValues": [[0, 2], [4, 6]], "rawBytes": "AP8="}
    assert sent_as_it_is.headers == {"content-type": "application/msgpack"}
    reply = sent_as_it_is.msgpack()
    assert (reply["rowValues"].tolist(), reply["rowValues"].dtype, reply["rawBytes"]) == (
        [[0, 2], [4, 6]],
        np.float32,
        b"\x00\xff",
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[1], [1, 2]], "rowValues: expected nested lists of equal lengths"),
        (["a"], "rowValues: expected numbers in nested lists"),
        ({}, "rowValues: expected numbers in nested lists, got an object"),
        (None, "rowValues: expected numbers in nested lists, got null"),
    ],
)
def test_arrays_that_are_refused(value: Any, words: str) -> None:
    status, text = message(OfRows, sent(msgspec.json.encode({"rowValues": value})))
    assert (status, words in text) == (400, True), text


def test_a_plain_function_and_an_error_for_one_request() -> None:
    good, bad = answer(of_function, sent(b'{"text": "a"}', id="1"), sent(b'{"text": ""}', id="2"))
    assert good.json() == {"text": "a"}
    assert bad.failure is not None
    assert "no text" in bad.failure.message


def test_a_stage_gets_and_gives_packed_values() -> None:
    request = InferenceRequest(
        "r", {"text": Part(pack("a"), PACKED), "top": Part(pack(2), PACKED)}, operation="packed:"
    )
    (reply,) = answer(OfDataclass, request)
    assert unpack(reply.body) == {"text": "aa"}


def test_objects_are_requests_of_a_local_model() -> None:
    with LocalModel(OfDataclass) as model:
        replies = model.predict([Query("a", points=[Point(1)]), {"text": "b"}])
    assert [reply.json() for reply in replies] == [{"text": "a", "points": [{"x": 1, "label": ""}]}, {"text": "b"}]
    with LocalModel(OfRows) as model:
        (reply,) = model.predict([Rows(np.ones(2, np.float32))])
    assert reply.json() == {"rowValues": [2, 2], "rawBytes": ""}
    with LocalModel(OfPydantic) as model:
        (reply,) = model.predict([Model(text="a")])
    assert reply.json()["text"] == "a"


def test_a_failed_batch_is_decoded_again() -> None:
    class Changes(Handler):
        def inference(self, inputs: list[Query]) -> list[Found]:
            for one in inputs:
                one.text += "!"
            if len(inputs) > 1:
                raise ValueError("one at a time")
            return [Found(one.text) for one in inputs]

    replies = answer(Changes, sent(b'{"text": "a"}', id="1"), sent(b'{"text": "b"}', id="2"))
    assert [reply.json() for reply in replies] == [{"text": "a!"}, {"text": "b!"}]


def test_a_description_has_no_inputs() -> None:
    class Describes(OfDataclass):
        def describe(self) -> Any:
            return {"own": True}

    (reply,) = answer(Describes, InferenceRequest("r", {}, Headers({"describe": "True"})))
    assert reply.json() == {"own": True}


def test_tensors_are_for_types_with_inputs() -> None:
    body = b'{"inputs": [{"name": "x", "datatype": "INT32", "shape": [1], "data": [1]}]}'
    status, text = message(OfDataclass, sent(body, operation="infer"))
    assert (status, text) == (
        501,
        "This model takes Query, not tensors: send application/json or application/msgpack to /predictions/ and the "
        "model's name.",
    )


def test_a_method_has_types_of_its_own() -> None:
    class Counts(OfDataclass):
        @method
        def count(self, data: list[Rows], context: Context) -> list[Found]:
            return [Found(str(one.row_values.size)) for one in data]

    with LocalModel(Counts) as model:
        good, bad = model.predict([Rows(np.ones(3, np.float32)), {"text": "a"}], method="count")
        (own,) = model.predict([Query("a")])
        schemas = {one.name: one.request_schema for one in with_types((), model.handler.typed)}
    assert (good.json(), own.json(), good.headers) == ({"text": "3"}, {"text": "a"}, {"content-type": JSON})
    assert bad.failure is not None
    assert bad.failure.message == "The request does not fit Rows: rowValues is missing."
    assert {name: schema and schema["$ref"] for name, schema in schemas.items()} == {
        "": "#/$defs/Query",
        "count": "#/$defs/Rows",
    }
