"""Output of `msx-serve logs` for a line."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest

from msx_frontend.cli.subcommands.log_lines import LEVELS, LineFilter

LOADED = {"time": 0.5, "level": "INFO", "logger": "msx.workers", "message": "ready", "model": "m", "version": "1.0"}
ASKED = {
    "time": 1,
    "level": "INFO",
    "logger": "msx.access",
    "method": "GET",
    "path": "/models/m",
    "status": 404,
    "ms": 2,
}
BAD = {"time": 1, "level": "ERROR", "logger": "x", "message": "no", "traceback": "Traceback: y"}


def shown(
    *entries: dict[str, Any] | str, least: str = "INFO", model: str | None = None, access: bool = True
) -> list[str]:
    lines = (one if isinstance(one, str) else json.dumps(one) for one in entries)
    wanted = LineFilter(LEVELS.index(least), model, access)
    return [click.unstyle(line).split(" ", 1)[1] for line in wanted.shown(iter(lines))]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (LOADED, "INFO     msx.workers [m 1.0]: ready"),
        (ASKED, "404      GET /models/m 2 ms "),
        (BAD, "ERROR    x: no\nTraceback: y"),
        ("a library's words", "library's words"),
        ("a \x1b[2J", r"\x1b[2J"),
        ({**BAD, "message": "\x1b[1m", "traceback": "T: \x9b1m"}, "ERROR    x: \\x1b[1m\nT: \\x9b1m"),
        ({**ASKED, "path": "/\x1b[1m"}, r"404      GET /\x1b[1m 2 ms "),
        ("{not json", "json"),
    ],
)
def test_readable(entry: dict[str, Any] | str, expected: str) -> None:
    assert shown(entry) == [expected]


def test_what_is_wanted() -> None:
    every = (LOADED, ASKED, BAD, "a word")
    assert len(shown(*every)) == 4
    assert shown(*every, least="WARNING") == ["ERROR    x: no\nTraceback: y", "word"]
    assert len(shown(*every, access=False)) == 3
    assert shown(*every, model="m") == ["INFO     msx.workers [m 1.0]: ready", "404      GET /models/m 2 ms "]
    assert shown(*every, model="other") == []
