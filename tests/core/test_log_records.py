from __future__ import annotations

import json
import logging
import sys
from typing import Any

from msx_core.batch import current_request_ids
from msx_core.log_records import RECORD_SEPARATOR, RecordFormatter


def formatted(message: str, *args: Any, exc_info: Any = None, **extra: Any) -> dict[str, Any]:
    record = logging.LogRecord("msx.handler.m", logging.INFO, __file__, 1, message, args, exc_info)
    record.__dict__.update(extra)
    line = RecordFormatter().format(record)
    assert line.startswith(RECORD_SEPARATOR)
    assert "\n" not in line
    entry: dict[str, Any] = json.loads(line[1:])
    return entry


def test_one_json_object_a_line() -> None:
    assert formatted("two\nlines of %s", "é") == {
        "level": "INFO",
        "logger": "msx.handler.m",
        "message": "two\nlines of é",
    }


def test_the_request_id_of_the_call_or_of_the_record() -> None:
    token = current_request_ids.set("r1")
    try:
        assert formatted("x")["request_id"] == "r1"
        assert formatted("x", request_id="r2")["request_id"] == "r2"
    finally:
        current_request_ids.reset(token)
    assert "request_id" not in formatted("x", request_id="")


def test_the_traceback() -> None:
    try:
        raise ValueError("bug")
    except ValueError:
        assert "ValueError: bug" in formatted("x", exc_info=sys.exc_info())["traceback"]


def test_half_a_character() -> None:
    assert formatted("bad \udcff")["message"] == "bad \\udcff"


def test_megabytes_are_shortened() -> None:
    assert len(formatted("x" * 10_000_000)["message"]) < 17_000
