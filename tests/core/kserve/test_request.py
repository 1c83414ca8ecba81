from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from msx_sdk import InvalidInput, PredictionError  # noqa: E402
from msx_sdk.kserve import Signature, TensorMeta  # noqa: E402
from tests.core.kserve.messages import binary, read, tensor  # noqa: E402

X = np.array([[1.5, 2.5]], np.float32)


def test_json_goes_to_the_handler_as_it_is() -> None:
    body = {
        "id": "7",
        "parameters": {"priority": 1},
        "inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [[1.5, 2.5]], "parameters": {"a": 1}}],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}, {"name": "z"}],
    }
    asked = read(msgspec.json.encode(body))
    assert asked.body == body
    assert (asked.id, asked.wanted, asked.binary) == ("7", {"y": True, "z": False}, False)


def test_bytes_become_arrays_and_their_parameters_leave() -> None:
    asked = read(
        *binary(tensor("x", X), tensor("s", np.array([b"ab"], object)), parameters={"binary_data_output": True})
    )
    x, s = asked.body["inputs"]
    assert np.array_equal(x["data"], X)
    assert s["data"].tolist() == [b"ab"]
    assert x.keys() == {"name", "shape", "datatype", "data"}
    assert asked.body["parameters"] == {}
    assert asked.binary


def test_bytes_and_json_in_one_request() -> None:
    one, raw = tensor("x", X)
    plain = {"name": "n", "shape": [1], "datatype": "INT64", "data": [3]}
    asked = read(*binary((plain, b""), (one, raw)))
    assert asked.body["inputs"][0] == plain
    assert np.array_equal(asked.body["inputs"][1]["data"], X)


def test_nan_as_pythons_clients_write_it() -> None:
    body = b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [NaN]}]}'
    assert str(read(body).body["inputs"][0]["data"]) == "[nan]"


def test_a_size_that_is_left_open_is_not_checked() -> None:
    body = {"inputs": [{"name": "x", "shape": [-1], "datatype": "BYTES", "data": "aGk="}]}
    assert read(msgspec.json.encode(body)).body == body


def one(**changes: Any) -> dict[str, Any]:
    tensor = {"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2], **changes}
    return {"inputs": [{key: value for key, value in tensor.items() if value is not None}]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "must be a JSON object"),
        ({}, "no list 'inputs'"),
        ({"inputs": [1]}, "an object with a 'name'"),
        ({"inputs": [*one()["inputs"], *one()["inputs"]]}, "input 'x' is there twice"),
        (one(datatype="FLOAT"), "input 'x': datatype 'FLOAT' is not one of BOOL, UINT8"),
        (one(datatype=[1]), r"input 'x': datatype \[1\] is not one of"),
        (one(data=[1, 2, 3]), r"input 'x': shape \[2\] takes 2 values, 'data' has 3"),
        (one(shape=[2, 2], data=[[1, 2], [3]]), r"input 'x': shape \[2, 2\] takes 4 values, 'data' has 3"),
        (one(data=None), "input 'x': neither 'data' nor the parameter binary_data_size"),
        (one(parameters=3), "input 'x': 'parameters' must be an object"),
        (one(parameters={"binary_data_size": 8}), "input 'x': binary_data_size is 8, but only 0 bytes of the body are"),
        (one(parameters={"binary_data_size": -1}), "binary_data_size must be a number of bytes, not -1"),
        ({**one(), "id": 7}, "'id' must be a text"),
        ({**one(), "outputs": 7}, "'outputs' must be a list"),
        ({**one(), "outputs": [{}]}, "every one of 'outputs' must be an object with a 'name'"),
    ],
)
def test_json_that_is_wrong(body: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(msgspec.json.encode(body))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_not_json(body: bytes) -> None:
    with pytest.raises(InvalidInput, match="the request is not JSON"):
        read(body)


@pytest.mark.parametrize("member", ["id", "inputs", "outputs", "parameters"])
def test_half_of_a_surrogate_pair_is_refused(member: str) -> None:
    """Its reply may repeat each text, and has to be UTF-8."""
    text = {"id": '"\\ud800"', "parameters": '{"p": "\\ud800"}'}.get(member, '[{"name": "\\ud800"}]')
    with pytest.raises(InvalidInput, match=r"line 1, column \d+: half of a surrogate pair, which is not a character"):
        read(f'{{"{member}": {text}, "inputs": []}}'.encode())


def test_shared_memory_is_not_served() -> None:
    inputs = [{"name": "x", "datatype": "INT8", "shape": [1], "parameters": {"shared_memory_region": "r"}}]
    outputs = [{"name": "y", "parameters": {"shared_memory_region": "r"}}]
    for body, what in (({"inputs": inputs}, "input 'x'"), ({**one(), "outputs": outputs}, "output 'y'")):
        with pytest.raises(
            PredictionError, match=f"{what}: shared memory is not served here; send and take"
        ) as refused:
            read(msgspec.json.encode(body))
        assert refused.value.status == 501


def test_how_many_classes() -> None:
    outputs = [{"name": "y", "parameters": {"classification": 3, "binary_data": True}}, {"name": "z"}]
    asked = read(msgspec.json.encode({**one(), "outputs": outputs}))
    assert (asked.wanted, asked.classes) == ({"y": True, "z": False}, {"y": 3})


@pytest.mark.parametrize("count", [0, -1, 1.5, "3", True, None])
def test_a_number_of_classes_that_is_none(count: Any) -> None:
    outputs = [{"name": "y", "parameters": {"classification": count}}]
    with pytest.raises(InvalidInput, match="output 'y': classification must be a number of classes"):
        read(msgspec.json.encode({**one(), "outputs": outputs}))


@pytest.mark.parametrize("size", ["-1", "1e3", "", "99", "9" * 30, "²"])
def test_a_header_that_is_wrong(size: str) -> None:
    with pytest.raises(InvalidInput, match=r"Inference-Header-Content-Length is .*, and the body has 4 bytes"):
        read(b"1234", size)


def test_more_bytes_than_the_tensors_take() -> None:
    body, size = binary(tensor("x", X))
    with pytest.raises(InvalidInput, match="the body has 3 bytes more than"):
        read(body + b"123", size)


def test_a_raw_body_is_the_only_input() -> None:
    takes = Signature((TensorMeta("x", "FP32", (-1, 2)),))
    asked = read(X.tobytes(), "0", takes)
    assert asked.binary
    (found,) = asked.body["inputs"]
    assert (found["name"], found["datatype"], found["shape"]) == ("x", "FP32", [1, 2])
    assert np.array_equal(found["data"], X)
    anything = read(b"ab\0", "0").body["inputs"][0]
    assert (anything["name"], anything["datatype"], anything["data"].tolist()) == ("input_0", "BYTES", [b"ab\0"])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((TensorMeta("x", "FP32", (2,)), TensorMeta("y", "FP32", (2,))), "one input; this one takes 'x', 'y'"),
        ((TensorMeta("x", "FP32", (-1, -1)),), r"input 'x': 3 bytes do not determine the shape of FP32 \[-1, -1\]"),
        ((TensorMeta("x", "FP32", (-1, 2)),), "input 'x': 3 bytes do not determine the shape"),
        ((TensorMeta("x", "FP32", (2,)),), r"input 'x': FP32 of shape \[2\] takes 8 bytes, not 3"),
    ],
)
def test_a_raw_body_that_does_not_fit(inputs: tuple[TensorMeta, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(b"123", "0", Signature(inputs))


json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
likely = st.fixed_dictionaries(
    {"inputs": st.lists(st.fixed_dictionaries({"name": st.text(max_size=2)}, optional={
        "shape": json, "datatype": st.sampled_from(["FP32", "BYTES", "BF16"]) | json, "data": json,
        "parameters": json | st.fixed_dictionaries({"binary_data_size": st.integers(-1, 9)}),
        "grpc_contents": json,
    }), max_size=3)},
    optional={"id": json, "outputs": json, "parameters": json},
)  # fmt: skip


@given(likely | json, st.binary(max_size=9))
def test_any_json_is_a_request_or_refused(body: Any, tail: bytes) -> None:
    import json as encoder

    head = encoder.dumps(body).encode()
    try:
        read(head + tail, str(len(head)))
    except PredictionError:
        return
