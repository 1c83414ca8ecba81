from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_backend.llm.text.stop import StopFinder, StopMatch

TEXT = st.text("abc", max_size=12)
STOPS = st.lists(st.text("abc", min_size=1, max_size=4), max_size=4).map(tuple)


def one_by_one(text: str, stops: tuple[str, ...]) -> StopMatch | None:
    """What a text that comes in single characters reaches first."""
    for end in range(len(text) + 1):
        reached = [stop for stop in stops if text[:end].endswith(stop)]
        if reached:
            stop = max(reached, key=len)
            return StopMatch(stop, end - len(stop), end)
    return None


@given(TEXT, STOPS)
def test_the_one_that_is_reached_first(text: str, stops: tuple[str, ...]) -> None:
    assert StopFinder(stops).find(text) == one_by_one(text, stops)


@given(TEXT, STOPS)
def test_what_is_safe_is_never_part_of_one(text: str, stops: tuple[str, ...]) -> None:
    finder = StopFinder(stops)
    if finder.find(text) is None:
        unsafe = [start for start in range(len(text)) if any(stop.startswith(text[start:]) for stop in stops)]
        assert finder.safe(text) == min(unsafe, default=len(text))


@pytest.mark.parametrize("stops", [(), ("",)])
def test_without_stop_strings(stops: tuple[str, ...]) -> None:
    assert StopFinder(stops).find("abc") is None
    assert StopFinder(stops).safe("abc") == 3
