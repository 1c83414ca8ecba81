from __future__ import annotations

import pytest

from msx_llm.sampling.regex import with_ascii_classes


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (r"\d+", "[0-9]+"),
        (r"\w\W", "[A-Za-z0-9_][^A-Za-z0-9_]"),
        (r"[\d.]\d", "[0-9.][0-9]"),
        (r"[^\D]", "[^[^0-9]]"),
        (r"\\d\[\d", r"\\d\[[0-9]"),
        (r"[\]\d]", r"[\]0-9]"),
        ("[a[b]c]é.", "[a[b]c]é."),
        ("]\\", "]\\"),
    ],
)
def test_classes_are_those_of_ascii(pattern: str, written: str) -> None:
    assert with_ascii_classes(pattern) == written
