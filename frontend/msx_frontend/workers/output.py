"""Writes what a worker prints into the log, with model, version and rank, and remembers why it crashed."""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Callable
from typing import Any

import msgspec

from msx_frontend.metrics.line import MARK, parse_metric
from msx_frontend.workers.crash_cause import CrashCause
from msx_protocol import MetricSample

RECORD_SEPARATOR = "\x1e"
_LEVEL = re.compile(r"\[(WARNING|ERROR|CRITICAL)\] [A-Z][A-Z0-9_]*\(")
"""The beginning of a line that MindSpore or CANN logs on stderr: `[WARNING] ME(1234:5678,MainProcess):2026-…`."""
LONGEST_LINE = 8192
LONGEST_RECORD = 1 << 18
"""Bytes of a record of the worker's own logging, with its traceback. A part of one is not JSON."""
LINES_PER_SECOND = 500
"""More lines are counted, not logged: a handler that prints megabytes must not fill the disk."""

log = logging.getLogger("msx.model")


class WorkerOutput(asyncio.Protocol):
    """Reads stdout or stderr of a worker, until it ends or is closed."""

    def __init__(
        self, labels: dict[str, Any], stream: str, on_metric: Callable[[MetricSample], None] | None = None
    ) -> None:
        """`on_metric` gets the samples of lines with TorchServe's mark; such lines are not logged."""
        self._labels = labels
        self._stream = stream
        self._on_metric = on_metric
        self._rest = b""
        self._cut = False
        """The current line is too long: its beginning has been logged, the rest is left out."""
        self._window = 0
        self._lines = 0
        self._dropped = 0
        self._report: asyncio.TimerHandle | None = None
        self.crash_cause = CrashCause()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self.data_received(b"\n" if self._rest else b"")
        self._report_dropped()

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._split(line)
            self._cut = False
        if len(self._rest) > _longest(self._rest):
            self._split(self._rest)
            self._rest, self._cut = b"", True

    def _split(self, line: bytes) -> None:
        """A record may follow a line that a handler printed without its end."""
        printed, mark, record = line.partition(RECORD_SEPARATOR.encode())
        if not self._cut and (printed or not mark):
            self._line(_on_a_terminal(printed)[:LONGEST_LINE].decode(errors="replace"))
        if mark:
            self._line((mark + record)[:LONGEST_RECORD].decode(errors="replace"))

    def _line(self, text: str) -> None:
        if text.startswith(MARK) and self._on_metric is not None:
            return self._metric(text, self._on_metric)
        entry = _record(text)
        is_critical = entry is not None and entry.get("level") == "CRITICAL"
        self.crash_cause.add(entry["message"] if entry else text, critical=is_critical)
        if text and self._allowed():
            self._log(entry or _printed(text))
        return None

    def _metric(self, text: str, on_metric: Callable[[MetricSample], None]) -> None:
        try:
            sample = parse_metric(text.removeprefix(MARK))
        except ValueError:
            if self._allowed():
                self._log({"message": f'Failed to parse metrics line: "{text}".', "level": "ERROR"})
        else:
            on_metric(sample)

    def _log(self, entry: dict[str, str]) -> None:
        level = logging.getLevelName(entry.get("level", "INFO"))
        message = entry["message"] + ("\n" + entry["traceback"] if "traceback" in entry else "")
        extra = {**self._labels, "stream": self._stream}
        extra |= {name: entry[name] for name in ("request_id", "trace_id") if name in entry}
        log.log(level if isinstance(level, int) else logging.INFO, "%s", message, extra=extra)

    def _allowed(self) -> bool:
        window = int(time.monotonic())
        if window != self._window:
            self._report_dropped()
            self._window, self._lines = window, 0
        self._lines += 1
        if self._lines > LINES_PER_SECOND:
            self._drop()
        return self._lines <= LINES_PER_SECOND

    def _drop(self) -> None:
        self._dropped += 1
        if self._report is None:
            self._report = asyncio.get_running_loop().call_later(1, self._report_dropped)

    def _report_dropped(self) -> None:
        if self._report is not None:
            self._report.cancel()
            self._report = None
        if self._dropped:
            log.warning(
                "%d lines of output were left out: more than %d a second",
                self._dropped,
                LINES_PER_SECOND,
                extra=self._labels,
            )
            self._dropped = 0


def _printed(text: str) -> dict[str, str]:
    """The entry of a line that is no record; what the framework warns of stays a warning."""
    level = _LEVEL.match(text)
    return {"message": text, "level": level[1]} if level else {"message": text}


def _on_a_terminal(line: bytes) -> bytes:
    """The last state of a progress bar, which writes its states over each other."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _longest(line: bytes) -> int:
    return LONGEST_RECORD if RECORD_SEPARATOR.encode() in line else LONGEST_LINE


def _record(text: str) -> dict[str, str] | None:
    if not text.startswith(RECORD_SEPARATOR):
        return None
    with contextlib.suppress(msgspec.DecodeError):
        entry: dict[str, str] = msgspec.json.decode(text[1:], type=dict[str, str])
        if "message" in entry:
            return entry
    return None
