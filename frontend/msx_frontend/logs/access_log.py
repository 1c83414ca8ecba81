"""The access log: one line a request, written in gathers, because a write per request costs more than the request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from msx_frontend.logs.access_lines import AccessLines, Asked, Entry
from msx_frontend.logs.rotating import RotatingFile

FLUSH_AFTER = 0.2
"""Seconds."""

FLUSH_AT = 500
"""Lines: so many are formatted and written in about a millisecond."""


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
        self._write_text, self._file, self._logger = write_text, file, logger
        self._lines = AccessLines(as_json=as_json)
        self._entries: list[Entry] = []
        self._timer: asyncio.TimerHandle | None = None

    def write(self, call: Served, status: int) -> None:
        now = monotonic()
        asked = (call.client, call.method, call.target, call.protocol, status)
        if self._logger is not None:
            millis = (now - call.started) * 1000
            self._logger.info("%s %d %.1f", Asked(*asked).line, status, millis, extra={"request_id": call.id})
            return
        entries = self._entries
        entries.append((asked, call.id, call.started, now))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER, self.flush)
        if len(entries) == FLUSH_AT:  # not here: what cannot be written is no matter of this request's
            asyncio.get_running_loop().call_soon(self._write_gathered)

    def flush(self) -> None:
        self._timer = None
        self._write_gathered()

    def _write_gathered(self) -> None:
        entries, self._entries = self._entries, []
        if not entries:
            return
        console, file = self._lines(entries)
        self._write_text(console)
        if self._file is not None:
            self._file.write(file)
