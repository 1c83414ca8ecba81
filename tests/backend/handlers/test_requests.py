"""Content types of bodies: obeyed where one is stated, told where none is, guessed where none can be."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from msx_backend.handlers._requests import RequestForm, RequestParser, TensorRequest
from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_sdk import InvalidInput, PredictionError
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel
from tests.backend.handlers.conftest import Serve

PAIRS = RequestParser([TensorSpec("x", "float32", (-1, 2))], batched=True)
NAMED = RequestParser([TensorSpec("left", "float32", (-1, 2)), TensorSpec("right", "int32", (-1,))], batched=True)
JSON, RAW, NPY, FORM = (f"application/{kind}" for kind in ("json", "octet-stream", "x-npy", "x-www-form-urlencoded"))
TEXT = b"[[0.1,2]"
"""Malformed JSON that is as long as a float32 tensor of shape [1, 2]."""
VALUES = np.array([[1, 2], [3, 4]], np.float32)


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def parse(
    data: dict[str, Any], stated: str | None = "", request: str | None = None, parser: RequestParser = PAIRS
) -> TensorRequest:
    """As the worker hands it over: `stated` is the type of all fields, `request` the one of the whole request."""
    return parser.parse(data, lambda field: stated, request)


def refused(
    data: dict[str, Any], stated: str | None = "", request: str | None = None, parser: RequestParser = PAIRS
) -> str:
    with pytest.raises(PredictionError) as error:
        parse(data, stated, request, parser)
    return f"{error.value.status} {error.value.message}"


# -- a body that could state a type --


@pytest.mark.parametrize(
    "stated", ["", JSON, "Application/JSON", "application/ld+json; v=1", "text/plain", "text/json"]
)
def test_json_and_whatever_says_so(stated: str) -> None:
    request = parse({"body": b" [[1, 2], [3, 4]]"}, stated)
    assert (request.arrays[0].tolist(), request.form) == (VALUES.tolist(), RequestForm.PLAIN)
    assert parse({"body": "[[1, 2], [3, 4]]"}, stated).arrays[0].tolist() == VALUES.tolist()


@pytest.mark.parametrize("stated", [JSON, "Application/JSON", "application/ld+json", "text/plain; charset=utf-8"])
def test_malformed_json_is_not_taken_for_values(stated: str) -> None:
    kind = stated.partition(";")[0].lower()
    assert (
        refused({"body": TEXT}, stated)
        == f"400 body ({kind}) is not valid JSON: line 1, column 9: expecting ',' delimiter"
    )


def test_without_a_type_json_is_json_and_all_else_is_told_what_to_state() -> None:
    for body in (TEXT, VALUES.tobytes(), b""):
        message = refused({"body": body})
        assert message.startswith("400 body came without a content type and is not valid JSON: ")
        assert message.endswith(
            "; send application/json, application/x-npy, application/octet-stream (bare little-endian values) or "
            "multipart/form-data (a part for each input), and state so"
        )


def test_bare_values_are_stated() -> None:
    for stated in (RAW, "Application/Octet-Stream"):
        assert parse({"body": VALUES.tobytes()}, stated).arrays[0].tolist() == VALUES.tolist()
    assert "5 raw bytes are not a float32 tensor" in refused({"body": b"[1,2]"}, RAW)


@pytest.mark.parametrize("stated", [None, "", JSON, RAW, NPY, "image/png", FORM])
def test_an_npy_file_is_known_by_its_magic(stated: str | None) -> None:
    request = parse({"body": bytearray(npy(VALUES))}, stated, stated)
    assert (request.arrays[0].tolist(), request.form) == (VALUES.tolist(), RequestForm.BINARY)


def test_an_npy_file_that_is_none() -> None:
    assert refused({"body": VALUES.tobytes()}, NPY).startswith("400 body (application/x-npy) is not an npy file")


@pytest.mark.parametrize("stated", ["image/png", "application/xml", "text/csv; header=absent", "nonsense"])
@pytest.mark.parametrize("body", [b"[[1, 2]]", "[[1, 2]]"])
def test_a_type_that_cannot_be_read_is_415(stated: str, body: Any) -> None:
    kind = stated.partition(";")[0]
    assert refused({"body": body}, stated).startswith(f"415 this model does not read {kind}; send application/json, ")


@pytest.mark.parametrize("body", [{"[[1, 2]]": b""}, {'{"x": [[1': b"", " 2]]}": b""}, {"y": b"[[1, 2]]"}, {}])
def test_curls_default_type_is_415(body: dict[str, Any]) -> None:
    message = refused(body, None, f"{FORM}; charset=utf-8")
    assert message.startswith(
        f"415 this model does not read {FORM} (what curl and urllib state unless they are told); send"
    )


def test_a_form_with_the_inputs_is_read() -> None:
    for name in ("x", "data", "body"):
        assert parse({name: b"[[1, 2]]"}, None, FORM).arrays[0].tolist() == [[1, 2]]
    assert "missing input 'right'" in refused({"left": b"[[1, 2]]"}, None, FORM, NAMED)
    assert "is not valid JSON: line 1, column 9" in refused({"x": TEXT}, None, FORM)


# -- where the client cannot state a type: gRPC, plain parts of a form, query parameters --


def test_bare_values_without_a_type_of_their_own() -> None:
    assert parse({"data": VALUES.tobytes()}, None).arrays[0].tolist() == VALUES.tolist()
    named = parse({"left": VALUES.tobytes(), "right": b"[1, 2]"}, None, parser=NAMED)
    assert [array.tolist() for array in named.arrays] == [VALUES.tolist(), [1, 2]]


@pytest.mark.parametrize("body", [b"\n[[1,2],[3,4]]", b"[[1,2], [3,4]]  ", b"[[1,2],[3,4]]   "])
def test_json_of_any_length(body: bytes) -> None:
    assert parse({"data": body}, None).arrays[0].tolist() == VALUES.tolist()
    assert parse({"data": b'{"x": [[1,2]]}'}, None).form is RequestForm.NAMED


@pytest.mark.parametrize("body", [TEXT, b"[" * 8, b"{\x00\x01\x02\x03\x04\x05\x06"])
def test_bare_values_may_begin_as_json_does(body: bytes) -> None:
    assert parse({"data": body}, None).arrays[0].tobytes() == body


def test_values_of_a_byte_each_may_even_be_json() -> None:
    texts = RequestParser([TensorSpec("x", "uint8", (-1,))], batched=False)
    assert parse({"x": b"[1, 2]"}, None, parser=texts).arrays[0].tobytes() == b"[1, 2]"
    assert parse({"x": b"[1, 2]"}, JSON, parser=texts).arrays[0].tolist() == [1, 2]


def test_neither_values_nor_json() -> None:
    assert refused({"data": b"[[1,2],[3,4]"}, None) == (
        "400 data has 12 bytes, which are not a tensor's, and is not valid JSON: "
        "line 1, column 13: expecting ',' delimiter"
    )
    message = "5 raw bytes are not a float32 tensor of shape [-1, 2], which takes a multiple of 8 bytes"
    assert message in refused({"data": b"12345"}, None)


@pytest.mark.parametrize("shape", [DYNAMIC_RANK, (-1, -1), (0, 2)])
def test_where_no_length_is_a_tensors_brackets_are_json(shape: tuple[int, ...]) -> None:
    parser = RequestParser([TensorSpec("x", "float32", shape)], batched=False)
    assert "raw bytes do not determine the shape" in refused({"x": VALUES.tobytes()}, None, parser=parser)
    assert "is not valid JSON" in refused({"x": TEXT}, None, parser=parser)


def test_several_inputs_in_one_object() -> None:
    body = b'{"left": [[1, 2]], "right": [3]}'
    for stated in (None, ""):
        assert [array.tolist() for array in parse({"body": body}, stated, parser=NAMED).arrays] == [[[1, 2]], [3]]


def test_what_stands_beside_named_inputs() -> None:
    """SageMaker's route tells the model's name, and a GET has an empty body."""
    for beside in ({"model_name": b"m"}, {"body": b""}):
        assert parse({"x": b"[[1, 2]]", **beside}, None).arrays[0].tolist() == [[1, 2]]
    assert parse({"body": b"[[1, 2]]", "model_name": b"m"}).arrays[0].tolist() == [[1, 2]]
    assert "unknown input 'body'" in refused({"x": b"[[1, 2]]", "body": b"[1]"}, None)


def test_types_of_parts_are_obeyed_each() -> None:
    types = {"left": RAW, "right": "Application/JSON"}
    request = NAMED.parse({"left": VALUES.tobytes(), "right": b"[1, 2]"}, types.__getitem__, "multipart/form-data")
    assert [array.tolist() for array in request.arrays] == [VALUES.tolist(), [1, 2]]
    with pytest.raises(InvalidInput, match=r"right \(application/json\) is not valid JSON: line 1, column 3"):
        NAMED.parse({"left": VALUES.tobytes(), "right": b"[1"}, types.__getitem__, "multipart/form-data")


# -- tensors of KServe v2 --


def v2(**changes: Any) -> dict[str, Any]:
    tensor = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2], **changes}
    return {"body": {"inputs": [tensor]}}


def test_a_row_by_itself_may_come_by_kserve_too() -> None:
    request = parse(v2(shape=[2]))
    assert (request.arrays[0].shape, request.single) == ((1, 2), True)


def test_one_value_has_an_axis_there() -> None:
    parser = RequestParser([TensorSpec("x", "float32", ())], batched=False)
    for shape in ([], [1]):
        assert parse(v2(shape=shape, data=[5]), parser=parser).arrays[0].shape == ()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (v2(shape=[-1, 2]), "400 input 'x': 'shape' must be a list of sizes that fits [-1, 2]; it is [-1, 2]"),
        (v2(data=[300], datatype="UINT8"), "400 input 'x': datatype 'UINT8', but the model takes FP32"),
        ({"body": {"inputs": [[1, 2]]}}, "400 every one of 'inputs' must be an object with a 'name'"),
        ({"body": {"inputs": v2()["body"]["inputs"] * 2}}, "400 input 'x' is there twice"),
    ],
)
def test_tensors_that_do_not_fit(body: dict[str, Any], message: str) -> None:
    assert refused(body) == message


# -- by a handler, as the worker runs it --


def served(model: LocalModel, *parts: Part) -> list[Any]:
    replies = model.predict([InferenceRequest(f"r{n}", {"body": part}) for n, part in enumerate(parts)])
    return [reply.failure.message if reply.failure else reply.json() for reply in replies]


@pytest.mark.mindspore
def test_one_of_a_batch_is_malformed(serve: Serve) -> None:
    good, malformed = Part(b"[[1, 2, 3]]", ""), Part(b"[[1, 2, 3]", JSON)
    answers = served(serve("mindir", "single.mindir"), good, malformed, Part(b"[[1, 2, 3]]", "image/png"), good)
    assert answers[1] == "body (application/json) is not valid JSON: line 1, column 11: expecting ',' delimiter"
    assert answers[2].startswith("this model does not read image/png")
    assert answers[0] == answers[3] == [[2, 4, 6]]


@pytest.mark.mindspore
def test_an_npy_file_that_says_json(serve: Serve) -> None:
    request = InferenceRequest("r", {"body": Part(npy(np.ones((1, 3))), JSON)})
    (reply,) = serve("mindir", "single.mindir").predict([request])
    assert np.load(io.BytesIO(reply.body)).tolist() == [[2, 2, 2]]


@pytest.mark.mindspore
def test_a_type_of_the_request_is_seen(serve: Serve) -> None:
    request = InferenceRequest("r", {"[[1,2,3]]": Part(b"")})
    request.headers["Content-Type"] = FORM
    (reply,) = serve("mindir", "single.mindir").predict([request])
    assert reply.status == 415
