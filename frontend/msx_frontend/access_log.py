"""The access log: one line a request, written in gathers, because a write per request costs more than the request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import msgspec

from msx_frontend.metrics.line import log4j_time
from msx_frontend.rotating import RotatingFile

FLUSH_AFTER = 0.2
"""Seconds."""


class Served(Protocol):
    @property
    def client(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def started(self) -> float: ...
    @property
    def protocol(self) -> str: ...


class AccessLog:
    """`write_text` takes whole lines; `as_json` makes each a JSON object; with a `logger` it gets them instead.

    `file` takes TorchServe's lines besides.
    """

    def __init__(
        self,
        write_text: Callable[[str], object],
        *,
        as_json: bool,
        logger: logging.Logger | None = None,
        file: RotatingFile | None = None,
    ) -> None:
        self._file, self._file_lines = file, list[str]()
        self._write_text, self._format = write_text, _json_line if as_json else _text_line
        self._logger = logger
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def write(self, call: Served, status: int) -> None:
        millis = (time.monotonic() - call.started) * 1000
        if self._logger is not None:
            self._logger.info("%s %d %.1f", _request(call), status, millis, extra={"request_id": call.id})
            return
        self._lines.append(self._format(call, status, millis))
        if self._file is not None:
            self._file_lines.append(_file_line(call, status, millis))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER, self.flush)

    def flush(self) -> None:
        lines, self._lines, self._timer = self._lines, [], None
        if lines:
            self._write_text("".join(lines))
        lines, self._file_lines = self._file_lines, []
        if self._file is not None:
            self._file.write("".join(lines))


def _text_line(call: Served, status: int, millis: float) -> str:
    """TorchServe's line, and the request's id."""
    now = datetime.now().isoformat(sep=" ", timespec="milliseconds")
    return f"{now} [INFO   ] access - {_request(call)} {status} {millis:.1f} [{call.id}]\n"


def _file_line(call: Served, status: int, millis: float) -> str:
    """TorchServe's very line; ms are whole."""
    return f"{log4j_time(time.time())} - {_request(call)} {status} {millis:.0f}\n"


def _request(call: Served) -> str:
    return f'/{call.client} "{call.method} {call.target} {call.protocol}"'


def _json_line(call: Served, status: int, millis: float) -> str:
    entry = {
        "time": time.time(),
        "level": "INFO",
        "logger": "msx.access",
        "client": call.client,
        "method": call.method,
        "path": call.target,
        "status": status,
        "ms": round(millis, 3),
        "request_id": call.id,
    }
    return msgspec.json.encode(entry).decode() + "\n"
