"""Tables that fit a terminal."""

from __future__ import annotations

import pytest

from msx_frontend.cli.status import HEADINGS, fitted, shortened, table_lines

LONG = "a-model-with-a-name-that-nobody-would-like-to-type-twice-in-a-day-or-once"
ROW = (LONG, "1.0", "READY", "9000 rank 0", "1234567", "READY", "node-a:0,1 node-b:0,1", "1234 MB")


def test_it_fits_80_columns() -> None:
    lines = list(table_lines([HEADINGS, ROW], 80))
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[1:3] == ["1.0", "READY"]
    assert lines[1].lstrip().startswith("a-mo")
    assert lines[1].split()[0].endswith("ce")


def test_without_a_terminal_nothing_is_cut() -> None:
    assert LONG in list(table_lines([HEADINGS, ROW], None))[1]


def test_a_table_that_fits_is_left_alone() -> None:
    rows: list[tuple[str, ...]] = [("a", "bb"), ("ccc", "d")]
    assert list(table_lines(rows, 80)) == list(table_lines(rows, None)) == ["  a    bb", "  ccc  d"]


@pytest.mark.parametrize(
    ("widths", "room", "found"), [([30, 5], 20, [15, 5]), ([30, 30], 40, [20, 20]), ([30, 30], 2, [10, 10])]
)
def test_the_widest_give_way(widths: list[int], room: int, found: list[int]) -> None:
    assert fitted(widths, room) == found


@pytest.mark.parametrize(
    ("text", "width", "short"), [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abc…fg"), ("abcdefg", 5, "ab…fg")]
)
def test_what_is_cut_is_in_the_middle(text: str, width: int, short: str) -> None:
    assert shortened(text, width) == short
