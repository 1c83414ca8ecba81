"""One line, and no folder of this machine."""

from __future__ import annotations

import pytest

from msx_frontend.public_text import MOST, public_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("No module named 'torchh'", "No module named 'torchh'"),
        ("[Errno 2] No such file: '/srv/my models/m/w.bin'", "[Errno 2] No such file: 'w.bin'"),
        ('cannot open "/w.bin" or "/srv/"', 'cannot open "w.bin" or ""'),
        ("/opt/cann/lib.so: cannot open shared object", "lib.so: cannot open shared object"),
        ("at ~/models/m.py:7 in (/srv/a/b.py)", "at m.py:7 in (b.py)"),
        ("see https://host/a/b.html and GET /models/m", "see https://host/a/b.html and GET m"),
        ("input/output error: 3/4 of it", "input/output error: 3/4 of it"),
        ("first\n  second\ttext", "first second text"),
    ],
)
def test_what_is_left(text: str, shown: str) -> None:
    assert public_text(text) == shown


def test_a_long_text_is_shortened() -> None:
    assert len(public_text("x " * 10_000)) < MOST + 50
    assert public_text("a" * 5000).startswith("a" * 100)
