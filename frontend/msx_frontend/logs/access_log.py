"""The access log: one line for each request. Many lines are written at once, because a write costs more than a
request."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

from msx_frontend.logs.access_lines import AccessLines, LoggedRequest, TracesOf
from msx_frontend.logs.rotating import RotatingFile
from msx_net.logged_calls import Entry, LoggedCall

FLUSH_AFTER = 0.2
"""Seconds."""

FLUSH_AT = 500
"""Lines: so many are formatted and written in about a millisecond."""


class AccessLog:
    """`write_text` gets whole lines, as JSON objects; a `logger` gets them instead. `file` gets TorchServe's lines.
    `traces_of` returns the traces of requests by their ids, where requests are traced."""

    def __init__(
        self,
        write_text: Callable[[str], object],
        *,
        logger: logging.Logger | None = None,
        file: RotatingFile | None = None,
        traces_of: TracesOf | None = None,
    ) -> None:
        self._write_text = write_text
        self._file = file
        self._logger = logger
        self._lines = AccessLines()
        self._traces_of = traces_of
        self._entries: list[Entry] = []
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None

    def write(self, call: LoggedCall, status: int) -> None:
        asked = (call.client, call.key_name, call.method, call.target, call.protocol, status)
        self.write_entry((asked, call.id, call.started, monotonic()))

    def write_entry(self, entry: Entry) -> None:
        """Write entries in the order of their ends."""
        if self._logger is not None:
            return self._tell(self._logger, entry)
        self._entries.append(entry)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER, self.flush)
        if len(self._entries) >= FLUSH_AT and self._soon is None:
            # Not here: a log that cannot be written must not disturb these requests.
            self._soon = asyncio.get_running_loop().call_soon(self._write_gathered)
        return None

    def _tell(self, logger: logging.Logger, entry: Entry) -> None:
        asked, id, started, ended = entry
        millis = (ended - started) * 1000
        extra = {"request_id": id}
        if self._traces_of is not None and (trace := self._traces_of([id]).get(id)):
            extra["trace_id"] = trace
        logger.info("%s %d %.1f", LoggedRequest(*asked).line, asked[-1], millis, extra=extra)

    def flush(self) -> None:
        self._timer = None
        self._write_gathered()

    def _write_gathered(self) -> None:
        entries, self._entries, self._soon = self._entries, [], None
        if not entries:
            return
        console, file = self._lines(entries, self._traces_of)
        self._write_text(console)
        if self._file is not None:
            self._file.write(file)
