"""The form of a reply is the client's choice: JSON unless MessagePack is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from msx_core.typed.media import wanted_msgpack
from msx_core.typed.replies import TypedReply
from msx_sdk import Context, Handler
from msx_sdk.request import Headers
from msx_sdk.testing import InferenceRequest, LocalModel, Part, Reply
from tests.core.typed.models import Found, Model, Query

MSGPACK = "application/msgpack"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", ""),
        ("*/*", ""),
        ("application/json", ""),
        ("text/html", ""),
        (MSGPACK, MSGPACK),
        ("Application/X-MsgPack", "application/x-msgpack"),
        ("application/vnd.msgpack;q=0.5, text/html", "application/vnd.msgpack"),
        ("application/msgpack, */*", MSGPACK),
        ("*/*, application/msgpack", MSGPACK),
        ("application/msgpack;q=0.5, */*", ""),
        ("application/json, application/msgpack", ""),
        ("application/msgpack, application/json", MSGPACK),
        ("application/json;q=0.8, application/msgpack;q=0.9", MSGPACK),
        ("application/json;q=0.9, application/msgpack;q=0.8", ""),
        ("application/msgpack;q=0", ""),
        ("application/msgpack;q=two", ""),
        ("application/msgpack;q=nan", ""),
    ],
)
def test_what_a_client_wants(accept: str, wanted: str) -> None:
    assert wanted_msgpack(accept) == wanted


def reply_of(handler: Any, accept: str = MSGPACK) -> Reply:
    request = InferenceRequest("r", {"body": Part(b'{"text": "a"}')}, Headers({"Accept": accept}))
    with LocalModel(handler) as model:
        (reply,) = model.predict([request])
    return reply


def replying(value: Any) -> type[Handler]:
    class Replies(Handler):
        def inference(self, inputs: list[Query]) -> Any:
            return [value] * len(inputs)

    return Replies


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Found("a"), {"text": "a"}), ({"a": [1]}, {"a": [1]}), (Model(text="a").points, []), (5, 5), (None, None)],
)
def test_values_of_any_kind(value: Any, expected: Any) -> None:
    reply = reply_of(replying(value))
    assert (reply.msgpack(), reply.headers) == (expected, {"content-type": MSGPACK})


@pytest.mark.parametrize(("value", "body"), [(b"\x01", b"\x01"), ("text", b"text"), (bytearray(b"x"), b"x")])
def test_bytes_and_text_are_the_handlers(value: Any, body: bytes) -> None:
    reply = reply_of(replying(value))
    assert (reply.body, reply.headers) == (body, {})


@pytest.mark.parametrize("value", [{"big": 1 << 70}, {"half": "\ud800"}])
def test_what_messagepack_cannot_hold_is_json(value: Any) -> None:
    reply = reply_of(replying(value))
    assert reply.headers == {"content-type": "application/json"}
    assert reply.status == 200


def test_what_has_no_form_at_all() -> None:
    reply = reply_of(replying(object()))
    assert reply.failure is not None
    assert (reply.status, reply.failure.message[:40]) == (503, "The reply, a object, has no JSON form: o")


def test_a_type_that_the_handler_set_stays() -> None:
    class Sets(Handler):
        def handle(self, data: list[Query], context: Context) -> list[Found]:
            context.set_response_content_type(0, "application/own")
            return [Found(one.text) for one in data]

    assert reply_of(Sets).headers == {"content-type": "application/own"}


def test_the_pieces_of_a_stream() -> None:
    class Streams(Handler):
        def handle(self, data: list[Query], context: Context) -> Iterator[list[Found]]:
            yield [Found("a")]
            yield [Found("b")]

    reply = reply_of(Streams)
    assert [msgspec.msgpack.decode(chunk) for chunk in reply.chunks if chunk] == [{"text": "a"}, {"text": "b"}]
    assert reply.headers == {"content-type": MSGPACK}


def test_a_reply_that_is_typed_alone() -> None:
    class Replies(Handler):
        def inference(self, inputs: Any) -> list[Found]:
            return [Found(one["body"].decode()) for one in inputs]

    assert reply_of(Replies).msgpack() == {"text": '{"text": "a"}'}


def test_pydantic_by_its_aliases() -> None:
    reply = TypedReply(MSGPACK)
    assert msgspec.msgpack.decode(reply(Model(text="a"))) == {"text": "a", "top": 1, "points": [], "extra": None}
    assert reply.content_type == MSGPACK
