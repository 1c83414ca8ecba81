from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_llm.text.stop import StopFinder, StopMatch

TEXT = st.text("abc", max_size=12)
PIECES = st.lists(st.text("abc", max_size=5), max_size=6)
STOPS = st.lists(st.text("abc", min_size=1, max_size=6), max_size=4).map(tuple)


def one_by_one(text: str, stops: tuple[str, ...]) -> StopMatch | None:
    """Stop that a text reaches first when it comes in single characters."""
    for end in range(len(text) + 1):
        reached = [stop for stop in stops if text[:end].endswith(stop)]
        if reached:
            stop = max(reached, key=len)
            return StopMatch(stop, end - len(stop), end)
    return None


def in_pieces(pieces: list[str], stops: tuple[str, ...]) -> StopMatch | None:
    """The match, counted from the beginning of the text."""
    finder, read = StopFinder(stops), 0
    for piece in pieces:
        before = read - finder.held
        if (found := finder.feed(piece)) is not None:
            return StopMatch(found.stop, before + found.start, before + found.end)
        read += len(piece)
    return None


@given(TEXT, STOPS)
def test_the_one_that_is_reached_first(text: str, stops: tuple[str, ...]) -> None:
    assert StopFinder(stops).feed(text) == one_by_one(text, stops)


@given(PIECES, STOPS)
def test_the_pieces_do_not_matter(pieces: list[str], stops: tuple[str, ...]) -> None:
    assert in_pieces(pieces, stops) == one_by_one("".join(pieces), stops)


@given(PIECES, STOPS)
def test_what_is_not_held_is_never_part_of_one(pieces: list[str], stops: tuple[str, ...]) -> None:
    finder, text = StopFinder(stops), "".join(pieces)
    if one_by_one(text, stops) is not None:
        return
    for piece in pieces:
        finder.feed(piece)
    unsafe = [start for start in range(len(text)) if any(stop.startswith(text[start:]) for stop in stops)]
    assert len(text) - finder.held == min(unsafe, default=len(text))


@pytest.mark.parametrize("stops", [(), ("",)])
def test_without_stop_strings(stops: tuple[str, ...]) -> None:
    finder = StopFinder(stops)
    assert not finder
    assert finder.feed("abc") is None
    assert finder.held == 0


def memory_of(length: int) -> int:
    """Bytes at most, for a text that comes to the last character but one of a stop string that repeats itself."""
    tracemalloc.start()
    finder = StopFinder(("ab" * length,))
    for _ in range(length // 50 - 1):
        assert finder.feed("ab" * 50) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_is_linear_in_the_length_of_a_stop_string() -> None:
    """All beginnings of 40,000 characters were 573 MB."""
    assert memory_of(20_000) < 4_000_000
