"""Output of workers: cut into lines, limited, and remembered."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.workers import output as module
from msx_frontend.workers.local_streams import PipeStream
from msx_frontend.workers.output import LINES_PER_SECOND, LONGEST_LINE, LONGEST_RECORD, RECORD_SEPARATOR, WorkerOutput
from msx_protocol import MetricSample
from tests.loops import run

LABELS = {"model": "m", "version": "1.0", "rank": 0}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """So that a test is never in two seconds."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture, clock: Clock) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "msx.model")
    return caplog


def on_a_loop(test: Callable[..., Any]) -> Callable[..., None]:
    @wraps(test)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        async def call() -> None:
            test(*args, **kwargs)

        run(call())

    return wrapped


def record(**entry: Any) -> bytes:
    return (RECORD_SEPARATOR + json.dumps(entry)).encode()


def fed(*pieces: bytes) -> WorkerOutput:
    output = WorkerOutput(dict(LABELS), "stdout")
    for piece in pieces:
        output.data_received(piece)
    output.close()
    return output


@on_a_loop
def test_lines_however_they_are_cut(logged: pytest.LogCaptureFixture) -> None:
    fed(b"one\ntw", b"o\r\n", b"\nthr", b"ee")
    assert logged.messages == ["one", "two", "three"]
    assert {record.levelno for record in logged.records} == {logging.INFO}
    for one in logged.records:
        assert (one.__dict__["model"], one.__dict__["version"], one.__dict__["rank"]) == ("m", "1.0", 0)
        assert one.__dict__["stream"] == "stdout"


@on_a_loop
def test_of_a_progress_bar_its_last_state(logged: pytest.LogCaptureFixture) -> None:
    fed(b"\rloading: 0%\rloading: 50%\r", b"loading: 100%\r\n", b"\rsaving: 1/1\n")
    assert logged.messages == ["loading: 100%", "saving: 1/1"]


class Lines(WorkerOutput):
    """Keeps the lines that it finds."""

    def __init__(self) -> None:
        super().__init__(dict(LABELS), "stdout")
        self.found: list[str] = []

    def _line(self, text: str) -> None:
        self.found.append(text)


@given(st.lists(st.text("ab\n", max_size=30)))
def test_nothing_is_lost_of_short_lines(pieces: list[str]) -> None:
    output = Lines()
    for piece in pieces:
        output.data_received(piece.encode())
    output.close()
    *lines, rest = "".join(pieces).split("\n")
    assert output.found == [*lines, *([rest] if rest else [])]


@on_a_loop
def test_bytes_that_are_not_text(logged: pytest.LogCaptureFixture) -> None:
    fed(b"caf\xe9\xff\n")
    assert logged.messages == ["caf\ufffd\ufffd"]


@on_a_loop
def test_a_percent_sign_is_not_a_format(logged: pytest.LogCaptureFixture) -> None:
    fed(b"100 %s done %d\n")
    assert logged.messages == ["100 %s done %d"]


@on_a_loop
def test_a_record_of_the_workers_logging(logged: pytest.LogCaptureFixture) -> None:
    fed(record(level="ERROR", logger="h", message="went wrong", request_id="id-1", traceback="Traceback: x") + b"\n")
    (one,) = logged.records
    assert (one.levelno, one.getMessage()) == (logging.ERROR, "went wrong\nTraceback: x")
    assert one.__dict__["request_id"] == "id-1"


@on_a_loop
@pytest.mark.parametrize(
    ("line", "level"),
    [
        (b"[WARNING] ME(41:140,MainProcess):2026-11-28-07:00:00.1 [mindspore/a.py:1] slow", logging.WARNING),
        (b"[ERROR] CORE(41,7f,python):2026-11-28-07:00:00.1 [mindspore/core/a.cc:1] F] bad", logging.ERROR),
        (b"[CRITICAL] GE_ADPT(41,7f,python): gone", logging.CRITICAL),
        (b"[INFO] ME(41:140,MainProcess): loaded", logging.INFO),
        (b"[WARNING] of a handler", logging.INFO),
        (b"it says [ERROR] ME(1", logging.INFO),
    ],
)
def test_what_the_framework_warns_of_stays_a_warning(logged: pytest.LogCaptureFixture, line: bytes, level: int) -> None:
    fed(line + b"\n")
    assert [(one.levelno, one.getMessage()) for one in logged.records] == [(level, line.decode())]


@on_a_loop
def test_levels_of_records(logged: pytest.LogCaptureFixture) -> None:
    fed(*(record(level=level, message="x") + b"\n" for level in ("DEBUG", "CRITICAL", "MINE", "Level 3")))
    assert [one.levelno for one in logged.records] == [logging.DEBUG, logging.CRITICAL, logging.INFO, logging.INFO]
    logged.clear()
    fed(record(message="no level") + b"\n")
    assert [one.levelno for one in logged.records] == [logging.INFO]


@pytest.mark.parametrize(
    "line", [b"\x1e{", b"\x1e[1]", b'\x1e{"level": "INFO"}', b'\x1e{"message": 5}', b"\x1e", b"\x1e\xff"]
)
def test_what_only_looks_like_a_record_is_a_line(line: bytes, logged: pytest.LogCaptureFixture) -> None:
    on_a_loop(lambda: fed(line + b"\n"))()
    assert logged.messages == [line.decode(errors="replace")]


@on_a_loop
def test_a_record_may_follow_a_line_without_its_end(logged: pytest.LogCaptureFixture) -> None:
    fed(b"50 %" + record(message="told") + b"\n")
    assert logged.messages == ["50 %", "told"]


@on_a_loop
def test_a_record_with_a_long_traceback_stays_one(logged: pytest.LogCaptureFixture) -> None:
    line = record(message="deep", traceback="x" * (LONGEST_LINE * 20)) + b"\n"
    fed(line[: LONGEST_LINE * 3], line[LONGEST_LINE * 3 :])
    assert logged.messages == ["deep\n" + "x" * (LONGEST_LINE * 20)]


@on_a_loop
def test_a_long_line_is_cut(logged: pytest.LogCaptureFixture) -> None:
    fed(b"x" * (LONGEST_LINE * 2) + b"\nnext\n")
    assert logged.messages == ["x" * LONGEST_LINE, "next"]


@on_a_loop
def test_a_line_that_never_ends_is_one_line_and_does_not_fill_the_memory(logged: pytest.LogCaptureFixture) -> None:
    output = WorkerOutput(dict(LABELS), "stdout")
    piece = b"x" * (1 << 16)
    for _ in range(1600):  # 100 MB
        output.data_received(piece)
        assert len(output._rest) <= LONGEST_LINE
    output.data_received(b"\nnext\n")
    output.close()
    assert logged.messages == ["x" * LONGEST_LINE, "next"]


@on_a_loop
def test_a_record_that_never_ends_neither(logged: pytest.LogCaptureFixture) -> None:
    output = WorkerOutput(dict(LABELS), "stderr")
    output.data_received(b"\x1e")
    for _ in range(100):
        output.data_received(b"x" * (1 << 16))
        assert len(output._rest) <= LONGEST_RECORD
    output.data_received(b"\n" + record(message="next") + b"\n")
    output.close()
    assert len(logged.messages) == 2
    assert logged.messages[1] == "next"


@on_a_loop
def test_a_record_at_the_end_of_a_line_that_was_cut_is_told(logged: pytest.LogCaptureFixture) -> None:
    fed(b"x" * (LONGEST_LINE * 2), b"y" * 10, record(message="told") + b"\n")
    assert logged.messages == ["x" * LONGEST_LINE, "told"]


@on_a_loop
def test_more_lines_than_allowed_are_counted(logged: pytest.LogCaptureFixture, clock: Clock) -> None:
    output = WorkerOutput(dict(LABELS), "stdout")
    output.data_received(b"line\n" * (LINES_PER_SECOND + 7))
    assert logged.messages == ["line"] * LINES_PER_SECOND
    clock.now += 1
    output.data_received(b"next\n")
    output.close()
    assert logged.messages[LINES_PER_SECOND:] == ["7 lines of output were left out: more than 500 a second", "next"]
    (warning,) = [one for one in logged.records if one.levelno == logging.WARNING]
    assert warning.__dict__["model"] == "m"


@on_a_loop
def test_lines_left_out_are_told_at_the_end(logged: pytest.LogCaptureFixture) -> None:
    fed(b"line\n" * (LINES_PER_SECOND + 1))
    assert logged.messages[-1] == "1 lines of output were left out: more than 500 a second"


@on_a_loop
def test_the_last_words_are_remembered_even_when_they_are_not_logged() -> None:
    lines = b"".join(b"%d\n" % n for n in range(LINES_PER_SECOND * 2))
    assert str(fed(lines).crash_cause) == "999"
    assert str(fed(lines, record(message="the end") + b"\n").crash_cause) == "the end"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_pipe_is_followed_to_its_end(loop: str, logged: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        read, write = os.pipe()
        output = WorkerOutput(dict(LABELS), "stderr")
        await PipeStream(read).connect(output)
        os.write(write, b"one\ntwo")
        while not logged.messages:
            await asyncio.sleep(0)
        os.close(write)
        await asyncio.sleep(0)
        output.close()

    run(test(), loop)
    assert logged.messages == ["one", "two"]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_pipe_that_another_process_holds_open_may_be_left(loop: str) -> None:
    async def test() -> None:
        read, write = os.pipe()
        output = WorkerOutput(dict(LABELS), "stderr")
        await PipeStream(read).connect(output)
        output.close()
        await asyncio.sleep(0)
        with pytest.raises(BrokenPipeError):
            await write_on(write)
        os.close(write)

    async def write_on(fd: int) -> None:
        while os.write(fd, b"x"):
            await asyncio.sleep(0)

    run(test(), loop)


def test_lines_with_torchserves_mark_are_metrics_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    found: list[MetricSample] = []
    caplog.set_level(logging.INFO)
    output = WorkerOutput({"model": "m"}, "stdout", found.append)
    output.data_received(b"said\n[METRICS]Size.MB:7|#Level:Model|#type:GAUGE|#hostname:h,1,id\n[METRICS]odd\n")
    assert found == [MetricSample("Size", "gauge", "MB", 7.0, [("Level", "Model"), ("Hostname", "h")], "id")]
    assert caplog.messages == ["said", 'Failed to parse metrics line: "[METRICS]odd".']
