"""The tensors of a request beside those that a model announces."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.kserve.fit import check_inputs
from msx_core.mindir import DYNAMIC_RANK
from msx_sdk import InvalidInput
from msx_sdk.kserve import TensorMeta

X = TensorMeta("x", "FP32", (-1, 3))


def x(**changes: Any) -> dict[str, Any]:
    """A tensor with these changes; `...` leaves a member out."""
    tensor = {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [1, 2.5, 3, 4, 5, float("nan")], **changes}
    return {key: value for key, value in tensor.items() if value is not ...}


def refusal(tensor: dict[str, Any], spec: TensorMeta = X, **options: Any) -> str:
    with pytest.raises(InvalidInput) as refused:
        check_inputs([tensor], [spec], **options)
    return refused.value.message


@pytest.mark.parametrize(
    "tensor",
    [x(), x(data=[[1, 2, 3], [4, 5, 6]]), x(data=[[1, 2], [3, 4], [5, 6]]), x(shape=[0, 3], data=[])],
)
def test_what_fits(tensor: dict[str, Any]) -> None:
    check_inputs([tensor], [X])


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (x(name="y"), "missing input 'x' and unknown input 'y'; this model takes x (FP32 [-1, 3])"),
        (x(datatype="INT8"), "input 'x': datatype 'INT8', but the model takes FP32"),
        (x(datatype=...), "input 'x': datatype None, but the model takes FP32"),
        (x(shape=[6]), "input 'x': shape [6] does not fit the model's [-1, 3] (-1 is any size)"),
        (x(shape=[1, 2, 3]), "input 'x': shape [1, 2, 3] does not fit the model's [-1, 3] (-1 is any size)"),
        (x(shape=[3, 2]), "input 'x': shape [3, 2] does not fit the model's [-1, 3] (-1 is any size)"),
        (x(shape=[3]), "input 'x': shape [3] does not fit the model's [-1, 3] (-1 is any size)"),
        (x(shape=[-1, 3]), "input 'x': 'shape' must be a list of sizes that fits [-1, 3]; it is [-1, 3]"),
        (x(shape="x"), "input 'x': 'shape' must be a list of sizes that fits [-1, 3]; it is 'x'"),
        (x(shape=[2.0, 3]), "input 'x': 'shape' must be a list of sizes that fits [-1, 3]; it is [2.0, 3]"),
        (x(shape=...), "input 'x': 'shape' must be a list of sizes that fits [-1, 3]; it is missing"),
        (
            x(shape=[1, 3]),
            "input 'x': 6 values do not fill shape [1, 3]; expected a list with the 3 values of shape [1, 3]",
        ),
        (x(data="aGk="), "input 'x': 'data' is 'aGk='; expected a list with the 6 values of shape [2, 3]"),
        (x(data=...), "input 'x': 'data' is missing; expected a list with the 6 values of shape [2, 3]"),
        (x(data=[[1, 2, 3], [4, 5]]), "input 'x': the nested lists are not rectangular"),
        (x(data=[[1, 2, 3], 4, 5, 6]), "input 'x': the nested lists are not rectangular"),
        (x(data=[1, 2, 3, 4, 5, [6]]), "input 'x': FP32 takes numbers, and 'data' has a list"),
        (x(data=[1, 2, 3, 4, None, "6"]), "input 'x': FP32 takes numbers, and 'data' has a text and null"),
        (x(data=[1, 2, 3, 4, 5, True]), "input 'x': FP32 takes numbers, and 'data' has true or false"),
        (x(data=[1, 2, 3, 4, 5, 1e39]), "input 'x': 1e+39 is outside of FP32: from -3.4028235e+38 to 3.4028235e+38"),
    ],
)
def test_what_does_not(tensor: dict[str, Any], message: str) -> None:
    assert refusal(tensor) == message


def test_a_message_does_not_repeat_what_is_long() -> None:
    for changes in ({"shape": ["a" * 10_000] * 10_000}, {"datatype": "a" * 10_000}, {"shape": [1] * 10_000}):
        assert len(refusal(x(**changes))) < 1000


@pytest.mark.parametrize(
    ("datatype", "data", "message"),
    [
        ("INT8", [127, -128], None),
        ("INT8", [128, 0], "values must be from -128 to 127 (INT8)"),
        ("UINT8", [-1, 0], "values must be from 0 to 255 (UINT8)"),
        ("UINT64", [2**64 - 1, 0], None),
        ("UINT64", [2**64, 0], "values must be from 0 to 18446744073709551615 (UINT64)"),
        ("INT64", [1.5, 0], "INT64 takes whole numbers, and 'data' has a number with a fraction"),
        ("BOOL", [True, False], None),
        ("BOOL", [1, 0], "BOOL takes true and false, and 'data' has a number"),
        ("BYTES", ["a", b"b"], None),
        ("BYTES", ["a", 1], "BYTES takes texts, and 'data' has a number"),
        ("FP16", [1, 2.5], None),
    ],
)
def test_values_of_every_kind(datatype: str, data: list[Any], message: str | None) -> None:
    tensor, spec = x(datatype=datatype, shape=[2], data=data), TensorMeta("x", datatype, (2,))
    if message is None:
        check_inputs([tensor], [spec])
    else:
        assert refusal(tensor, spec) == f"input 'x': {message}"


def test_one_value_may_have_no_axis_or_one() -> None:
    scalar = TensorMeta("x", "FP32", ())
    for shape in ([], [1]):
        check_inputs([x(shape=shape, data=[1])], [scalar])
    assert "shape [2] does not fit the model's [1]" in refusal(x(shape=[2], data=[1, 2]), scalar)


def test_a_rank_that_is_open() -> None:
    for shape in ([6], [2, 3], [1, 2, 3]):
        check_inputs([x(shape=shape)], [TensorMeta("x", "FP32", DYNAMIC_RANK)])


def test_a_row_by_itself_only_where_the_model_takes_rows() -> None:
    row = x(shape=[3], data=[1, 2, 3])
    check_inputs([row], [X], lone_rows=True)
    assert "shape [2] does not fit" in refusal(x(shape=[2], data=[1, 2]), lone_rows=True)


def test_arrays_have_been_checked_when_they_were_made() -> None:
    np = pytest.importorskip("numpy")
    check_inputs([x(data=np.ones((2, 3), np.float32))], [X])
    assert "datatype 'FP64'" in refusal(x(datatype="FP64", data=np.ones((2, 3))))
