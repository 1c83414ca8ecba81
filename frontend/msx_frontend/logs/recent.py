"""The last lines that the workers of each model have logged, for those who look at a model in the console."""

import logging
from collections import OrderedDict, deque
from typing import NamedTuple

KEPT = 200
"""Lines of each version."""
LONGEST = 2000
"""Characters of a line that are kept."""
MOST_BYTES = 1 << 20
"""Most bytes of the lines of all versions: the version that has been silent longest loses its lines first."""
LOGGERS = ("msx.model", "msx.workers", "org.pytorch.serve.wlm.WorkerThread")
"""Loggers of the output of workers, and of messages on them."""

Labels = tuple[str, str]


class LogLine(NamedTuple):
    """`number` grows from line to line; `time` is in seconds since the epoch."""

    number: int
    time: float
    level: str
    worker: int
    rank: int
    stream: str
    request: str
    text: str


class RecentLines(logging.Handler):
    """Recent log lines with the labels of a model."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: OrderedDict[Labels, deque[LogLine]] = OrderedDict()
        self._number = 0
        self.size = 0
        """Characters of all lines."""

    def open(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)

    def close(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self)
        super().close()

    def last(self, labels: Labels) -> int:
        """The number of the newest line of this version; 0 without one."""
        lines = self._lines.get(labels)
        return lines[-1].number if lines else 0

    def of(self, labels: Labels, after: int = 0) -> list[LogLine]:
        """Lines after the one with this number, from old to new."""
        return [line for line in self._lines.get(labels, ()) if line.number > after]

    def emit(self, record: logging.LogRecord) -> None:
        model, version = getattr(record, "model", ""), getattr(record, "version", "")
        if not model:
            return
        self._number += 1
        line = LogLine(
            self._number,
            record.created,
            record.levelname,
            getattr(record, "worker", 0),
            getattr(record, "rank", 0),
            getattr(record, "stream", ""),
            getattr(record, "request_id", ""),
            record.getMessage()[:LONGEST],
        )
        lines = self._lines.setdefault((model, version), deque())
        self._lines.move_to_end((model, version))
        lines.append(line)
        self.size += len(line.text)
        if len(lines) > KEPT:
            self.size -= len(lines.popleft().text)
        while self.size > MOST_BYTES:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        labels, lines = next(iter(self._lines.items()))
        self.size -= len(lines.popleft().text)
        if not lines:
            del self._lines[labels]
