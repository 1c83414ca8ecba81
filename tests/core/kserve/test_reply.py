from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from msx_core.kserve.classification import ClassLabels  # noqa: E402
from msx_core.kserve.message import split  # noqa: E402
from msx_core.kserve.reply import encode_reply  # noqa: E402
from msx_core.kserve.request import InferRequest  # noqa: E402
from msx_core.kserve.tensors import DTYPES, from_raw  # noqa: E402
from msx_sdk import PredictionError  # noqa: E402
from msx_sdk.kserve import Signature, TensorMeta  # noqa: E402
from tests.core.kserve.messages import parted, same  # noqa: E402

MODEL = ("m", "1.0")


def outputs(value: Any, signature: Signature | None = None, **asked: Any) -> list[dict[str, Any]]:
    head, _ = parted(encode_reply(value, InferRequest({}, **asked), MODEL, signature or Signature()))
    found: list[dict[str, Any]] = head["outputs"]
    return found


def output(name: str, datatype: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


class Tensor:
    """As MindSpore's: an array in disguise."""

    def asnumpy(self) -> Any:
        return np.array([1, 2], np.int32)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"y": np.array([[1.5]], np.float32), "z": [1, 2]},
            [("y", "FP32", [1, 1], [1.5]), ("z", "INT64", [2], [1, 2])],
        ),
        ({"y": Tensor()}, [("y", "INT32", [2], [1, 2])]),
        ({"y": 1.5, "z": True}, [("y", "FP64", [1], [1.5]), ("z", "BOOL", [1], [True])]),
        ([[1.5, 2.5]], [("output_0", "FP64", [1, 2], [1.5, 2.5])]),
        (np.array([1], np.float16), [("output_0", "FP16", [1], [1.0])]),
        ("cat", [("output_0", "BYTES", [1], ["cat"])]),
        (b"cat", [("output_0", "BYTES", [1], ["cat"])]),
        (["a", "b"], [("output_0", "BYTES", [2], ["a", "b"])]),
        ({"a": {"b": 1}}, [("output_0", "BYTES", [1], ['{\n  "a": {\n    "b": 1\n  }\n}'])]),
        ([[1], [2, 3]], [("output_0", "BYTES", [1], ["[\n  [\n    1\n  ],\n  [\n    2,\n    3\n  ]\n]"])]),
    ],
)
def test_what_a_handler_may_return(value: Any, expected: list[Any]) -> None:
    assert outputs(value) == [output(*one) for one in expected]


REPLY = {
    "model_name": "other",
    "id": "own",
    "parameters": {"a": 1},
    "outputs": [output("y", "FP32", [2, 2], [[1, 2], [3, 4]]), output("s", "BYTES", [1], ["é"])],
}


@pytest.mark.parametrize("value", [REPLY, msgspec.json.encode(REPLY), msgspec.json.encode(REPLY).decode()])
def test_the_protocols_own_reply(value: Any) -> None:
    head, raw = parted(encode_reply(value, InferRequest({}, wanted={"s": True, "y": False}), MODEL, Signature()))
    assert head == {
        "model_name": "m",
        "model_version": "1.0",
        "id": "own",
        "parameters": {"a": 1},
        "outputs": [
            {"name": "s", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}},
            output("y", "FP32", [2, 2], [1, 2, 3, 4]),
        ],
    }
    assert raw == {"s": b"\x02\0\0\0" + "é".encode()}
    head, raw = parted(encode_reply(value, InferRequest({}, id="7", binary=True), MODEL, Signature()))
    assert head["id"] == "7"
    assert np.frombuffer(raw["y"], np.float32).tolist() == [1, 2, 3, 4]


def test_arrays_take_the_data_type_and_shape_that_they_are_said_to_have() -> None:
    declared = {"name": "y", "datatype": "FP32", "shape": [2, 1], "data": np.array([1.5, 2.5])}
    assert outputs({"outputs": [declared]}) == [output("y", "FP32", [2, 1], [1.5, 2.5])]
    assert outputs({"outputs": [{"name": "y", "data": np.array([1], np.int8)}]}) == [output("y", "INT8", [1], [1])]
    declared = {"name": "y", "datatype": "BF16", "shape": [1], "data": [1.5]}
    _, raw = parted(encode_reply({"outputs": [declared]}, InferRequest({}, binary=True), MODEL, Signature()))
    assert raw == {"y": b"\xc0\x3f"}


def test_the_name_of_an_only_output() -> None:
    assert outputs([1], wanted={"asked": False})[0]["name"] == "asked"
    assert outputs([1], Signature((), (TensorMeta("known", "INT64", (1,)),)))[0]["name"] == "known"


@pytest.mark.parametrize(
    ("value", "asked", "status", "message"),
    [
        ({"y": [1]}, {"wanted": {"z": False}}, 400, "unknown output 'z'; this model gives 'y'"),
        ({"y": np.array([1j])}, {}, 500, "output 'y': the protocol has no data type for complex128"),
        (b"\xff", {}, 400, "output 'output_0' has bytes that JSON cannot carry: ask for it with binary_data"),
        ({"outputs": [output("y", "FP32", [3], [1])]}, {}, 500, r"'y': shape \[3\] does not hold the 1 values"),
        ({"outputs": [output("y", "FP32", [-1], [1])]}, {}, 500, r"'y': shape \[-1\] does not hold"),
        ({"outputs": [output("y", "FP32", [1], ["a"])]}, {"binary": True}, 500, "output 'y': its data is not FP32"),
    ],
)
def test_replies_that_cannot_be_sent(value: Any, asked: Any, status: int, message: str) -> None:
    with pytest.raises(PredictionError, match=message) as refused:
        outputs(value, **asked)
    assert refused.value.status == status


@given(st.sampled_from([name for name in DTYPES if name != "BF16"]), st.lists(st.integers(0, 3), max_size=3), st.data())
def test_round_trip_of_arrays(datatype: str, shape: list[int], data: st.DataObject) -> None:
    size = int(np.prod(shape))
    values = st.binary(max_size=3) if datatype == "BYTES" else st.integers(0, 1)
    array = np.empty(size, object)
    array[:] = data.draw(st.lists(values, min_size=size, max_size=size))
    array = array.astype(DTYPES[datatype]).reshape(shape)
    named = {"outputs": [{"name": "y", "datatype": datatype, "data": array}]}
    head, raw = parted(encode_reply(named, InferRequest({}, binary=True), MODEL, Signature()))
    (found,) = head["outputs"]
    again = from_raw("y", found["datatype"], found["shape"], memoryview(raw["y"]))
    assert same(again, array if array.ndim else array.reshape(1))


@pytest.mark.parametrize("message", [b"", b"\1\0\0", b"\0\0\0\0{}", b"\3\0\0\0{}"])
def test_what_is_not_a_message(message: bytes) -> None:
    with pytest.raises(ValueError, match="bytes of JSON"):
        split(message)


# -- classification --


def top(value: Any, count: Any, folder: Path | None = None) -> Any:
    asked = InferRequest({}, wanted={"y": False}, classes={"y": count})
    (found,) = parted(encode_reply({"y": value}, asked, MODEL, Signature(), ClassLabels(folder)))[0]["outputs"]
    assert found["datatype"] == "BYTES"
    return found["shape"], found["data"]


def test_the_largest_of_each_row(tmp_path: Path) -> None:
    """As Triton writes them; of equal values the first class comes first."""
    scores = np.array([[0.25, 0.5, 0.25], [3, 1, 2]], np.float32)
    assert top(scores, 2) == ([2, 2], ["0.500000:1", "0.250000:0", "3.000000:0", "2.000000:2"])
    labels = '\ufeff{"0": ["n1", "cat"], "2": "dog"}'  # with a byte order mark, as some editors write it
    (tmp_path / "index_to_name.json").write_text(labels)
    assert top(scores[1], 9, tmp_path) == ([3], ["3.000000:0:cat", "2.000000:2:dog", "1.000000:1"])
    assert top(np.array([1, 255], np.uint8), 1) == ([1], ["255:1"])
    assert top(np.array([-5, -128], np.int8), 1) == ([1], ["-5:0"])
    assert top([0.5, 1.5], 1) == ([1], ["1.500000:1"])
    assert top(np.empty((2, 0), np.float32), 1) == ([2, 0], [])


def test_what_cannot_be_classified(tmp_path: Path) -> None:
    with pytest.raises(PredictionError, match="output 'y': classification is for numbers"):
        top(["text"], 1)
    (tmp_path / "index_to_name.json").write_text("[1, 2]")
    with pytest.raises(PredictionError, match=r"index_to_name\.json is not a JSON object"):
        top([1.0], 1, tmp_path)


def test_only_the_output_that_was_asked_for_is_classified() -> None:
    asked = InferRequest({}, wanted={"y": False, "z": False}, classes={"y": 1})
    y, z = parted(encode_reply({"z": [1, 2], "y": [3, 4]}, asked, MODEL, Signature()))[0]["outputs"]
    assert (y["data"], z["data"]) == (["4:1"], [1, 2])
