"""Numbers that the type of a tensor holds, and those that it does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.bodies import json_value, lenient
from msx_core.kserve.fit import check_values
from msx_core.number_range import OutOfRangeError, fit, numbers
from msx_sdk.errors import InvalidInput

INF = float("inf")
NAMES = {"FP16": "float16", "FP32": "float32", "FP64": "float64", "BF16": "float32"}
FIRST_BEYOND = 2.0**128 - 2.0**119 - 2.0**103
LAST_BFLOAT16 = math.nextafter(FIRST_BEYOND, 0)
HELD = [
    ("FP16", 65519.9),
    ("FP16", 1e-30),
    ("FP32", 3.4028235677973362e38),
    ("FP32", INF),
    ("FP16", -INF),
    ("FP64", 1e308),
    ("BF16", LAST_BFLOAT16),
    ("BF16", INF),
    ("FP32", 2**70),
]
BEYOND = [
    ("FP16", 70000, "70000 is outside of FP16: from -65504 to 65504"),
    ("FP16", -65520.0, "-65520.0 is outside of FP16: from -65504 to 65504"),
    ("FP32", 1e39, "1e\\+39 is outside of FP32: from -3.4028235e\\+38 to 3.4028235e\\+38"),
    ("FP32", 3.4028235677973366e38, "is outside of FP32"),
    ("FP64", 10**400, "is outside of FP64: from -1.7976931e\\+308 to 1.7976931e\\+308"),
    ("BF16", FIRST_BEYOND, "is outside of BF16: from -3.3895314e\\+38 to 3.3895314e\\+38"),
    ("BF16", 1e39, "1e\\+39 is outside of BF16"),
]


def by_numpy(datatype: str, values: list[Any]) -> np.ndarray[Any, Any]:
    dtype = NAMES[datatype]
    return fit(numbers(values, dtype), dtype, "bfloat16" if datatype == "BF16" else "")


def by_protocol(datatype: str, values: list[Any]) -> None:
    check_values("input 'x'", datatype, [len(values)], {"data": values})


@pytest.mark.parametrize(("datatype", "value"), HELD)
def test_what_a_type_holds(datatype: str, value: float) -> None:
    assert np.isfinite(by_numpy(datatype, [1, value])[1]) == np.isfinite(float(value))
    by_protocol(datatype, [1, value])


@pytest.mark.parametrize(("datatype", "value", "words"), BEYOND)
def test_what_it_does_not_hold_is_refused(datatype: str, value: float, words: str) -> None:
    with pytest.raises(OutOfRangeError, match="is outside of"):
        by_numpy(datatype, [float("nan"), INF, 1, value])
    with pytest.raises(InvalidInput, match=f"input 'x': .*{words}"):
        by_protocol(datatype, [float("nan"), INF, 1, value])


@given(st.sampled_from(sorted(NAMES)), st.lists(st.floats() | st.integers(-(2**1030), 2**1030), min_size=1))
def test_both_checks_agree(datatype: str, values: list[float]) -> None:
    """With NumPy, and without: of the same numbers."""
    outcomes = []
    for check in (by_numpy, by_protocol):
        try:
            check(datatype, values)
            outcomes.append(True)
        except (OutOfRangeError, InvalidInput):
            outcomes.append(False)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("dtype", ["uint64", "int64", "uint8"])
@given(data=st.data())
def test_integers_are_exact(dtype: str, data: st.DataObject) -> None:
    """Hashed ids lie on both sides of 2⁶³, of which NumPy makes floats."""
    limits = np.iinfo(dtype)
    values = data.draw(st.lists(st.integers(int(limits.min), int(limits.max)), min_size=1))
    assert fit(numbers(values, dtype), dtype).tolist() == values


@pytest.mark.parametrize("value", [2**64, 10**60, 2**128 + 1, -(10**400), -1])
def test_an_integer_beyond_the_type_is_named_as_one(value: int) -> None:
    shown = str(value) if abs(value) < 2**128 else "an integer of"
    with pytest.raises(OutOfRangeError, match=f"^{shown}.* is outside of uint64: from 0 to 18446744073709551615$"):
        fit(numbers([2**63 + 5, 3, value], "uint64"), "uint64")


@pytest.mark.parametrize("text", [b"1e400", b'{"a": [1, -1e999]}', b'{"a": NaN, "b": 1e400}'])
def test_numbers_beyond_every_type(text: bytes) -> None:
    """Infinity and NaN may be said; a number is not taken for one of them."""
    with pytest.raises(ValueError, match=r"is -?1e\d+: 64-bit floats are from -1.79769e\+308 to 1.79769e\+308"):
        json_value(text)


def test_their_member_is_named() -> None:
    with pytest.raises(ValueError, match=r"^a\[1\] is -1e999"):
        json_value(b'{"a": [1, -1e999]}')


def test_torchserves_handlers_get_what_python_reads() -> None:
    assert lenient(b"[1e400]", "application/json") == [INF]
    assert json_value(b"[Infinity, -Infinity, 1e308]") == [INF, -INF, 1e308]
