from __future__ import annotations

from typing import Any

import pytest

from msx_frontend.models.schemas.tensor_examples import example_shape, example_value
from msx_frontend.models.schemas.tensors import request_example
from msx_sdk.kserve import Signature, TensorMeta


@pytest.mark.parametrize(
    ("name", "datatype", "value"),
    [
        ("x", "FP32", 0),
        ("input_ids", "INT64", 0),
        ("mask", "FP16", 1),
        ("Attention_Mask", "INT32", 1),
        ("masks.0", "BOOL", True),
        ("batch_valid_length", "INT32", 1),
        ("seq_lens", "INT32", 1),
        ("lengthscale", "FP32", 0),
        ("flag", "BOOL", False),
        ("text", "BYTES", "text"),
    ],
)
def test_a_mask_and_a_length_are_ones(name: str, datatype: str, value: Any) -> None:
    assert example_value(name, datatype) == value
    assert type(example_value(name, datatype)) is type(value)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((-1, 4), [1, 4]), ((), []), ((-1, 3, -1, -1), [1, 3, 32, 32]), ((2, -1, 8, -1), [2, 1, 8, 32]), ((-2,), [1])],
)
def test_sizes_that_may_be_any(shape: tuple[int, ...], sizes: list[int]) -> None:
    assert example_shape(shape) == sizes


def test_the_example_of_a_description() -> None:
    tensors = (TensorMeta("ids", "INT32", (-1, 2)), TensorMeta("mask", "INT32", (-1, 2)))
    example = request_example(Signature(tensors, ()))
    assert example is not None
    assert [one["data"] for one in example["inputs"]] == [[0, 0], [1, 1]]
