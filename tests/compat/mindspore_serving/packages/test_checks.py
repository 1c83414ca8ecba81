from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from msx_mindspore_serving.packages.mindspore_serving._checks import as_ints, as_strs, check_bool, check_int, check_str

REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (check_str, (1,), "Parameter 'p' should be str, but actually <class 'int'>"),
    (check_str, ("",), "Parameter 'p' should not be empty str"),
    (check_bool, (1,), "Parameter 'p' should be bool, but actually <class 'int'>"),
    (check_int, ("1",), "Parameter 'p' should be int, but actually <class 'str'>"),
    (check_int, (True,), "Parameter 'p' should be int, but actually <class 'bool'>"),
    (check_int, (-1, 0), "Parameter 'p' should be >= 0"),
    (check_int, (2, None, 1), "Parameter 'p' should be <= 1"),
    (check_int, (65, 0, 64), "Parameter 'p' should be in range [0,64]"),
    (as_ints, ("1",), "Parameter 'p' should be int or tuple/list of int, but actually <class 'str'>"),
    (as_ints, (True,), "Parameter 'p' should be int or tuple/list of int, but actually <class 'bool'>"),
    (as_ints, ([1, 1],), "The item value '1' in parameter 'p' should not be repeated"),
    (as_ints, (["1", "1"],), "The item value '1' in parameter 'p' should be int, but actually <class 'str'>"),
    (as_ints, ([1, 1.0],), "The item value '1.0' in parameter 'p' should not be repeated"),
    (as_ints, ([-1],), "The item value '-1' in parameter 'p' should be >= 0"),
    (as_ints, (-1,), "The item value '-1' in parameter 'p' should be >= 0"),
    (as_strs, (1,), "Parameter 'p' should be str or tuple/list of str, but actually <class 'int'>"),
    (as_strs, ([1],), "The item of parameter 'p' should be str, but actually <class 'int'>"),
    (as_strs, ("",), "The item of parameter 'p' should not be empty str"),
    (as_strs, (["a", "a"],), "The item value 'a' in parameter 'p' should not be repeated"),
]


@pytest.mark.parametrize(("check", "given", "text"), REFUSED, ids=[text for *_, text in REFUSED])
def test_refused(check: Callable[..., Any], given: tuple[Any, ...], text: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        check("p", *given)
    assert str(raised.value) == text


def test_taken() -> None:
    check_str("p", "a")
    check_bool("p", False)
    check_int("p", 64, 0, 64)
    assert as_ints("p", 0) == (0,)
    assert as_ints("p", [2, 0]) == (2, 0)
    assert as_ints("p", ()) == ()
    assert as_strs("p", "a") == ("a",)
    assert as_strs("p", ("b", "a")) == ("b", "a")
