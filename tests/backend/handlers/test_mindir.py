"""Any MindIR: every form of request, batches, and requests that are wrong."""

import io
from typing import Any

import msgspec
import numpy as np
import pytest

from msx_core.kserve.message import split
from msx_core.kserve.types import INFER
from msx_core.packed import PACKED, pack, unpack
from msx_sdk.errors import HandlerLoadError
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.testing import Reply
from tests.backend.handlers.conftest import Serve
from tests.core.test_mindir import DATA

pytestmark = pytest.mark.mindspore

ROW = [1.0, 2.0, 3.0]
NPY = "application/x-npy"
BOASTFUL_HEADER = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3), }"
BOASTFUL_NPY = b"\x93NUMPY\x01\x00v\x00" + BOASTFUL_HEADER.ljust(117) + b"\n"


@pytest.fixture
def serve(shared: Serve) -> Serve:
    return shared


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def kserve(**changes: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": ROW, **changes}]}


def error(reply: Reply) -> str:
    assert reply.failure is not None
    assert reply.status == 400, reply.failure
    return reply.failure.message


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ([ROW, ROW], [[2, 4, 6], [2, 4, 6]]),
        (ROW, [2, 4, 6]),
        ("[[1, 2, 3]]", [[2, 4, 6]]),
        ({"x": [ROW]}, {"output_0": [[2, 4, 6]]}),
        ({"x": ROW}, {"output_0": [2, 4, 6]}),
        ({"instances": [ROW, ROW]}, {"predictions": [[2, 4, 6], [2, 4, 6]]}),
        ({"instances": [{"x": ROW}]}, {"predictions": [[2, 4, 6]]}),
        (np.array([ROW], np.float32).tobytes(), [[2, 4, 6]]),
    ],
)  # fmt: skip
def test_forms_of_json_and_raw_bytes(serve: Serve, body: Any, answer: Any) -> None:
    (reply,) = serve("mindir", "single.mindir").predict([body])
    assert reply.json() == answer
    assert reply.headers == {"content-type": "application/json"}


def test_the_open_inference_protocol(serve: Serve) -> None:
    model = serve("mindir", "affine.mindir")
    (reply,) = model.predict([{"id": "q1", **kserve()}])
    assert reply.json() == {
        "model_name": "local",
        "model_version": "1.0",
        "id": "q1",
        "outputs": [
            {"name": "output_0", "datatype": "FP32", "shape": [1, 3], "data": [3, 4, 6]},
            {"name": "output_1", "datatype": "FP32", "shape": [1], "data": [6]},
        ],
    }
    (single,) = model.predict([kserve(shape=[3])])
    assert [output["shape"] for output in single.json()["outputs"]] == [[3], [1]]
    (chosen,) = model.predict([{**kserve(data=[[1, 2, 3]]), "outputs": [{"name": "output_1"}]}])
    assert [output["name"] for output in chosen.json()["outputs"]] == ["output_1"]


@pytest.mark.parametrize(
    ("body", "accept", "binary"),
    [(npy([ROW]), None, True), (npy([ROW]), "application/json", False), ([ROW], NPY, True), ([ROW], "*/*", False)],
)
def test_npy_in_and_out(serve: Serve, body: Any, accept: str | None, binary: bool) -> None:
    headers = {} if accept is None else {"accept": accept}
    (reply,) = serve("mindir", "single.mindir").predict([body], headers)
    answer = np.load(io.BytesIO(reply.body)).tolist() if binary else reply.json()
    assert answer == [[2, 4, 6]]
    assert reply.headers["content-type"] == (NPY if binary else "application/json")


def test_npy_in_fortran_order(serve: Serve) -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3))
    (reply,) = serve("mindir", "single.mindir").predict([npy(array)], {"Accept": "application/json"})
    assert reply.json() == (array * 2).tolist()


def test_multipart_fields_are_named_inputs(serve: Serve) -> None:
    parts = {"left": Part(npy(np.array([ROW], np.float32))), "right": Part(b"[[1, 1, 1]]", "application/json")}
    request = InferenceRequest("r", parts, Headers())
    (reply,) = serve("mindir", "pair.mindir").predict([request])
    assert reply.json() == {"output_0": [[2, 3, 4]]}


def test_instances_with_two_outputs(serve: Serve) -> None:
    (reply,) = serve("mindir", "affine.mindir").predict([{"instances": [ROW]}])
    assert reply.json() == {"predictions": [{"output_0": [3, 4, 6], "output_1": 6}]}


@pytest.mark.parametrize("name", ["single.mindir", "fixed.mindir"])
def test_each_request_gets_back_its_own_rows(serve: Serve, name: str) -> None:
    bodies = [[[n * 10 + row, 0, 0] for row in range(n)] for n in (1, 3, 2)]
    replies = serve("mindir", name).predict(bodies)
    assert [reply.json() for reply in replies] == [[[2 * a, 0, 0] for a, _, _ in body] for body in bodies]


def test_a_batch_is_one_call_of_the_network(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    model = serve("mindir", "single.mindir")
    calls: list[int] = []

    def counted(network: Any, arrays: list[Any]) -> list[Any]:
        calls.append(len(arrays[0]))
        return arrays

    monkeypatch.setattr(type(model.handler.owner.network), "__call__", counted)
    model.predict([[ROW], [ROW, ROW]])
    assert calls == [3]


def test_outputs_that_are_not_rows_are_computed_for_each_request(serve: Serve) -> None:
    replies = serve("mindir", "mean.mindir").predict([[ROW], [[4.0, 4.0, 4.0]]])
    assert [reply.json() for reply in replies] == [2, 4]


def test_a_bad_request_leaves_its_neighbours_alone(serve: Serve) -> None:
    good, bad, also_good = serve("mindir", "single.mindir").predict([[ROW], [[1, 2]], [ROW]])
    assert good.json() == also_good.json() == [[2, 4, 6]]
    assert error(bad) == "input 'x': shape [1, 2] does not fit the model's [-1, 3] (-1 is any size)"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([[1, 2], [3]], "the nested lists are not rectangular"),
        ([["a", "b", "c"]], "expected numbers"),
        ([[True, False, True]], "bool values, but the model takes float32"),
        ([[None, 1, 2]], "expected numbers"),
        ([], "does not fit"),
        ({"x": [ROW], "z": 1}, "unknown input 'z'; this model takes x (float32 [-1, 3])"),
        ({}, "missing input 'x'"),
        ({"instances": []}, "at least one instance"),
        ({"instances": [{"x": ROW}, {}]}, "must have the same inputs"),
        ("no json", "body (text/plain) is not valid JSON: line 1, column 1: expecting value"),
        (b"12345", "5 raw bytes are not a float32 tensor of shape [-1, 3], which takes a multiple of 12 bytes"),
        (b"\x93NUMPY\x01\x00garbage", "not an npy file"),
        (npy([ROW])[:-1], "the npy header promises 24 bytes, 23 follow"),
        (BOASTFUL_NPY, "promises 12000000000000 bytes, 0 follow"),
        (kserve(datatype="FP64"), "datatype 'FP64', but the model takes FP32"),
        (kserve(shape=[2, 3]), "3 values do not fill shape [2, 3]"),
        (kserve(shape="x"), "'shape' must be a list of sizes"),
        (kserve(name="y"), "missing input 'x' and unknown input 'y'"),
        ({**kserve(), "outputs": [{"name": "z"}]}, "unknown output 'z'; this model gives output_0"),
    ],
)  # fmt: skip
def test_wrong_requests_are_told_what_is_wrong(serve: Serve, body: Any, message: str) -> None:
    (reply,) = serve("mindir", "single.mindir").predict([body])
    assert message in error(reply)


def test_an_npy_file_with_objects_is_refused(serve: Serve) -> None:
    (reply,) = serve("mindir", "single.mindir").predict([npy(np.array([{"a": 1}], object))])
    assert "type object is refused" in error(reply)


def test_values_that_a_data_type_cannot_hold_are_refused(serve: Serve) -> None:
    fraction, large, fits = serve("mindir", "whole.mindir").predict([[[1.5, 0, 0]], [[2**31, 0, 0]], [[1, 2, 3]]])
    assert error(fraction) == "input 'x': float64 values, but the model takes int32"
    assert error(large) == "input 'x': 2147483648 is outside of int32: from -2147483648 to 2147483647"
    assert fits.json() == [[2, 4, 6]]


def test_a_number_that_float32_cannot_hold_is_refused(serve: Serve) -> None:
    large, double, infinite = serve("mindir", "single.mindir").predict(
        [[[1e39, 0, 0]], npy(np.array([[1e39, 0, 0]])), npy(np.array([[np.inf, 0, 0]]))]
    )
    for reply in (large, double):
        assert error(reply) == "input 'x': 1e+39 is outside of float32: from -3.4028235e+38 to 3.4028235e+38"
    assert infinite.failure is None


def test_two_inputs_must_be_named_and_of_one_length(serve: Serve) -> None:
    unnamed, uneven = serve("mindir", "pair.mindir").predict([[ROW], {"left": [ROW], "right": [ROW, ROW]}])
    assert error(unnamed).startswith("the inputs must be named; this model takes left (float32 [-1, 3]), right")
    assert "same number of rows: left [1, 3], right [2, 3]" in error(uneven)


def test_npy_cannot_hold_two_outputs(serve: Serve) -> None:
    (reply,) = serve("mindir", "affine.mindir").predict([[ROW]], {"Accept": NPY})
    assert reply.status == 406


def test_one_compiled_graph_serves_every_batch_size(serve: Serve) -> None:
    (declared,) = serve("mindir", "single.mindir").handler.owner.network.run.get_inputs()
    assert declared.shape == (-1, 3)


def test_one_value_is_announced_and_answered_with_an_axis(serve: Serve) -> None:
    model = serve("mindir", "mean.mindir")
    assert [spec.shape for spec in model.handler.owner.tensor_signature().outputs] == [(1,)]
    body = msgspec.json.encode(kserve())
    for operation in ("", INFER):
        (reply,) = model.predict([InferenceRequest("r", {"body": Part(body, "application/json")}, operation=operation)])
        answer = msgspec.json.decode(split(reply.body)[0] if operation else reply.body)
        assert (answer["outputs"][0]["shape"], answer["outputs"][0]["data"]) == ([1], [2])


def floats(values: list[Any]) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("net", "value", "answer"),
    [
        ("single", floats([1, 2, 3]), floats([2, 4, 6])),
        ("single", {"x": floats([[1, 2, 3]])}, {"output_0": floats([[2, 4, 6]])}),
        ("affine", floats([[1, 2, 3]]), {"output_0": floats([[3, 4, 6]]), "output_1": floats([6])}),
    ],
)
def test_another_stage_is_given_arrays(serve: Serve, net: str, value: Any, answer: Any) -> None:
    """Whatever the client accepts."""
    part, headers = Part(pack(value), PACKED), Headers([("accept", NPY)])
    (reply,) = serve("mindir", f"{net}.mindir").predict(
        [InferenceRequest("r", {"body": part}, headers=headers, operation="packed:")]
    )
    np.testing.assert_equal(unpack(reply.body), answer)


def test_describe_is_the_signature(serve: Serve) -> None:
    description = serve("mindir", "affine.mindir").handler.owner.describe()
    assert description["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert [output["shape"] for output in description["outputs"]] == [[-1, 3], [-1]]


@pytest.mark.parametrize(
    ("serialized", "message"),
    [("net.py", "net.py is not a MindIR file"), ("none.mindir", "no file 'none.mindir'"), ("", "--serialized-file")],
)
def test_a_model_that_cannot_be_loaded_is_named(serve: Serve, serialized: str, message: str) -> None:
    with pytest.raises(HandlerLoadError, match=message):
        serve("mindir", serialized)


def test_a_file_of_several_ranks_on_one(serve: Serve) -> None:
    """MindSpore itself ends by SIGSEGV."""
    with pytest.raises(HandlerLoadError, match=r"allreduce\.mindir computes together with other ranks \(AllReduce"):
        serve("mindir", "allreduce.mindir", folder=DATA)
