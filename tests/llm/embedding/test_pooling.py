"""Results of each pooling mode, and which modes a file asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msx_llm.embedding.pooling import Mode, Pooling, normalized, read_pooling
from msx_sdk.errors import HandlerLoadError

STATES = np.array([[1.0, 2], [3, 0], [8, 4], [100, 100]], np.float32)
"""States of three tokens and padding."""


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("cls", [1, 2]),
        ("mean", [4, 2]),
        ("mean_sqrt_len_tokens", [12 / 3**0.5, 6 / 3**0.5]),
        ("weightedmean", [31 / 6, 14 / 6]),
        ("last", [8, 4]),
    ],
)
def test_a_weighted_sum_of_the_tokens(mode: Mode, expected: list[float]) -> None:
    weights = Pooling((mode,)).weights([3], 4)
    assert weights.shape == (1, 1, 4)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights[0, 0] @ STATES, expected, rtol=1e-6)


def test_vectors_of_several_modes_are_joined_in_order() -> None:
    pooling = Pooling(("cls", "max", "last"))
    sums, largest = np.array([[[1.0, 2], [5, 6]]]), np.array([[3.0, 4]])
    assert pooling.join(sums, largest).tolist() == [[1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize(
    ("raw", "modes"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, ("cls",)),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, ("max", "mean")),
        ({"pooling_mode_lasttoken": True}, ("last",)),
        ({"pooling_mode": "lasttoken"}, ("last",)),
        ({"pooling_mode": ["mean", "cls"]}, ("cls", "mean")),
    ],
)
def test_the_modes_of_a_file(raw: dict[str, Any], modes: tuple[str, ...]) -> None:
    assert read_pooling(raw).modes == modes


@pytest.mark.parametrize("raw", [{}, {"pooling_mode_mean_tokens": False}, {"pooling_mode": "attention"}])
def test_a_file_without_a_known_mode(raw: dict[str, Any]) -> None:
    with pytest.raises(HandlerLoadError, match="has no mode of pooling_mode_cls_token, "):
        read_pooling(raw)


def test_normalized_vectors_have_length_one_and_zero_stays() -> None:
    assert normalized(np.array([[3.0, 4], [0, 0]])).tolist() == [[0.6, 0.8], [0, 0]]
