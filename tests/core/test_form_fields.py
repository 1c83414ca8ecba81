"""Bodies that came as a form's, because their client stated no other type, to handlers that read a body."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from msx_backend.envelopes.by_name import envelope_named
from msx_frontend.body_fields import parse_fields
from msx_sdk import Handler, InvalidInput
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.testing import LocalModel, Reply
from msx_sdk.text_generation import TextGenerationHandler

FORM = "application/x-www-form-urlencoded"
SENTENCE = (
    f"This model reads a body, and the request came without one. A body that comes as {FORM}, which curl and urllib "
    "state unless they are told, is read as a form's fields: state what it is, for curl by -H 'content-type: "
    "application/json' (text/plain, application/octet-stream for a file)."
)
NO_FORMS = [
    b'{"x": [1, 2]}', b'{"text": "a=b&c=d"}', b"[[1, 2], [3, 4]]", b'["a=b"]', b' \n{"a": "b=c"}',
    b"hello", b"a sentence with x = y", b"R&D is fun", b"line\nline", b"1,2\n3,4", b'<a href="x=y">', "grüße".encode(),
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR=&=&", b"\xff\xd8\xff\xe0\0\x10JFIF=a", b"\0\0=1",
]  # fmt: skip
FORMS = [b"a=1", b"a=1&b=", b"&a=1", b"user[name]=ann&x=1", b"text=hello world", "größe=1".encode()]


def sent(body: bytes, content_type: str = FORM, n: int = 0) -> InferenceRequest:
    parts = {one.name: Part(one.data, one.content_type) for one in parse_fields(content_type.encode(), body)}
    return InferenceRequest(f"r{n}", parts, Headers({"Content-Type": content_type}))


def reads(data: Any, context: Any) -> Any:
    return ["read" if row["body"] is not None else "" for row in data]


def gets(data: Any, context: Any) -> Any:
    """As TorchServe's handlers."""
    return [str(row.get("data") or row.get("body")) for row in data]


class Reads(Handler):
    def inference(self, inputs: Any) -> Any:
        return reads(inputs, None)


def answer(handler: Any, *requests: InferenceRequest) -> list[Reply]:
    with LocalModel(handler) as model:
        return model.predict(requests)


@pytest.mark.parametrize("handler", [reads, gets, Reads])
@pytest.mark.parametrize("body", NO_FORMS)
def test_a_body_that_is_no_form(handler: Any, body: bytes) -> None:
    (reply,) = answer(handler, sent(body))
    assert reply.failure is not None
    assert (reply.status, reply.failure.message) == (400, SENTENCE)


@pytest.mark.parametrize("body", FORMS)
def test_a_form_to_a_handler_that_reads_a_body(body: bytes) -> None:
    (reply,) = answer(Reads, sent(body))
    assert reply.failure is not None
    assert (reply.status, reply.failure.message) == (400, SENTENCE)
    (reply,) = answer(gets, sent(body))
    assert (reply.status, reply.body) == (200, b"None")


def test_its_neighbours_are_answered() -> None:
    good, bad, late = answer(reads, sent(b"{}", "application/json"), sent(b"{}", n=1), sent(b"x", "text/plain", 2))
    assert [good.body, bad.status, late.body] == [b"read", 400, b"read"]


def test_fields_of_another_kind_are_named() -> None:
    request = InferenceRequest("r", {f"field{n}": Part(b"1") for n in range(9)})
    (reply,) = answer(reads, request)
    assert reply.failure is not None
    names = "'field0', 'field1', 'field2', 'field3', 'field4'"
    expected = f"This model reads a body, and the request has fields, none of that name: {names}."
    assert (reply.status, reply.failure.message) == (400, expected)


def test_a_handler_that_tries_the_body_first() -> None:
    def tries(data: Any, context: Any) -> Any:
        try:
            return [row["body"] for row in data]
        except KeyError:
            return [bytes(row["text"]) for row in data]

    (reply,) = answer(tries, sent(b"text=hello"))
    assert reply.body == b"hello"


def test_other_fields_that_are_missing_are_the_handlers_bug() -> None:
    (reply,) = answer(lambda data, context: [row["image"] for row in data], sent(b"text=hello"))
    assert reply.failure is not None
    assert (reply.status, reply.failure.message) == (503, "Prediction failed: KeyError: 'image'")


def test_fields_are_a_dict_to_everything_else() -> None:
    row = sent(b"a=1&b=2").data()
    assert row == {"a": bytearray(b"1"), "b": bytearray(b"2")}
    assert ("body" in row, row.get("body", 5), row.get("a"), {**row}) == (False, 5, bytearray(b"1"), row)
    for made in (row.copy(), copy.copy(row), copy.deepcopy(row), pickle.loads(pickle.dumps(row))):
        assert (type(made), made) == (dict, row)


def test_a_body_is_a_plain_dict() -> None:
    """Nearly all requests: they pay nothing."""
    assert type(sent(b"{}", "application/json").data()) is dict


class Prompted(TextGenerationHandler):
    def generate(self, request: Any, context: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize("body", [b"Once upon a time", b'{"prompt": "a=b"}', b"hello"])
def test_a_prompt_that_came_as_a_form(body: bytes) -> None:
    (reply,) = answer(Prompted, sent(body))
    assert reply.failure is not None
    assert (reply.status, reply.failure.message) == (400, SENTENCE)


@pytest.mark.parametrize("envelope", ["body", "json", "kserve"])
def test_a_body_in_an_envelope_that_came_as_a_form(envelope: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        envelope_named(envelope)(reads).parse_input([sent(b'{"instances": [1]}').data()])
    assert caught.value.message == SENTENCE
