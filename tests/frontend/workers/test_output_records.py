"""Records of the worker's formatter, as the frontend reads them, wherever they begin and however long they are."""

from __future__ import annotations

import logging
import sys

import pytest

from msx_core.log_records import RecordFormatter
from msx_frontend.workers.output import LONGEST_LINE, WorkerOutput


def line(message: str, level: int = logging.WARNING, exc_info: object = None) -> bytes:
    record = logging.LogRecord("msx.handler.m", level, __file__, 1, message, (), exc_info)  # type: ignore[arg-type]
    return RecordFormatter().format(record).encode() + b"\n"


@pytest.fixture
def output(caplog: pytest.LogCaptureFixture) -> WorkerOutput:
    caplog.set_level(logging.INFO, "msx.model")
    return WorkerOutput({"model": "m"}, "stderr")


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_a_record_keeps_its_level(output: WorkerOutput, caplog: pytest.LogCaptureFixture) -> None:
    output.data_received(b"plain\n" + line("careful"))
    assert logged(caplog) == [("INFO", "plain"), ("WARNING", "careful")]


def test_a_critical_record_is_the_cause_of_a_crash(output: WorkerOutput) -> None:
    output.data_received(line("the engine has ended", logging.CRITICAL) + b"leaked\n")
    assert str(output.crash_cause) == "the engine has ended"


def test_a_record_after_a_half_line(output: WorkerOutput, caplog: pytest.LogCaptureFixture) -> None:
    output.data_received(b"progress 50 %" + line("careful") + b"progress 100 %\n")
    assert logged(caplog) == [("INFO", "progress 50 %"), ("WARNING", "careful"), ("INFO", "progress 100 %")]


def test_a_long_traceback_in_pieces(output: WorkerOutput, caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("\x01" * 100_000)
    except ValueError:
        data = line("the handler failed", logging.ERROR, sys.exc_info())
    assert len(data) > LONGEST_LINE
    for start in range(0, len(data), 4096):
        output.data_received(data[start : start + 4096])
    ((level, message),) = logged(caplog)
    assert level == "ERROR"
    assert message.startswith("the handler failed\nTraceback (most recent call last)")


def test_a_plain_line_without_an_end_is_cut(output: WorkerOutput, caplog: pytest.LogCaptureFixture) -> None:
    output.data_received(b"x" * (LONGEST_LINE + 1))
    assert logged(caplog) == [("INFO", "x" * LONGEST_LINE)]
