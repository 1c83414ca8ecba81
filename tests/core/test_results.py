from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from msx_core.results import encode
from msx_sdk.errors import PredictionError


class Tensor:
    """As MindSpore's: it has asnumpy()."""

    def asnumpy(self) -> Any:
        return np.array([[1.5, 2.0]], np.float32)


@pytest.mark.parametrize("value", [b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff")])
def test_bytes_stay_as_they_are(value: Any) -> None:
    assert encode(value) == b"\x00\xff"


def test_text_is_utf8() -> None:
    assert encode("é") == b"\xc3\xa9"


def test_json_is_indented_by_two_as_torchserve_does() -> None:
    value = {"label": "cat", "scores": [0.5, 1]}
    assert encode(value) == json.dumps(value, indent=2).encode()
    assert encode(None) == b"null"


@pytest.mark.parametrize(
    ("value", "tree"),
    [
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        ({"p": np.float32(0.5), "n": np.int64(3)}, {"p": 0.5, "n": 3}),
        (Tensor(), [[1.5, 2.0]]),
        (2**70, 2**70),
        (["\ud800"], ["\ud800"]),
        ({1: "int key"}, {"1": "int key"}),
        ({"inside": b"\x00\xff"}, {"inside": "AP8="}),
    ],
)
def test_arrays_tensors_and_odd_values_become_json(value: Any, tree: Any) -> None:
    assert json.loads(encode(value)) == tree


def test_not_a_number_is_null_because_json_has_none() -> None:
    assert json.loads(encode([float("nan")])) == [None]


def circle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize("value", [object(), [object()], {(1, 2): "tuple key"}, circle()])
def test_what_has_no_json_form_is_503(value: Any) -> None:
    with pytest.raises(PredictionError, match="Unsupported model output data type") as caught:
        encode(value)
    assert caught.value.status == 503
