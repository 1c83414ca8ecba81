"""A terminal shows every control character of others' text, and obeys none."""

from __future__ import annotations

import pytest

from msx_frontend.visible import visible

ESCAPES = "\x1b[31mred\x1b]0;title\x07 \x9b2J back\b \x7f return\r nul\x00"


def test_controls_are_shown() -> None:
    assert visible(ESCAPES) == r"\x1b[31mred\x1b]0;title\x07 \x9b2J back\x08 \x7f return\r nul\x00"


@pytest.mark.parametrize("text", ["", "plain", "two\nlines\tand a tab", "grüße, 你好 😀", "a\\x1bb", "\u00a0\u2028"])
def test_other_text_is_as_it_was(text: str) -> None:
    assert visible(text) == text
