"""A log file with a size limit: a full file is renamed, and the oldest one is removed."""

from __future__ import annotations

import logging
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

MOST_BYTES = 100 << 20
KEPT = 5
"""TorchServe's limits."""

log = logging.getLogger("msx.server")


class RotatingFile(RotatingFileHandler):
    """A handler for a logger, or a file of whole lines by `write`. It is opened by its first line or by `create`.

    Lines that cannot be written are lost; the first failure is logged.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(path, maxBytes=most_bytes, backupCount=KEPT, delay=True, encoding="utf-8", errors="replace")
        self._told = False

    def create(self) -> None:
        """Create the file before its first line, for programs that follow it."""
        try:
            self._open().close()
        except OSError:
            self._tell()

    def write(self, lines: str) -> None:
        if lines:
            self.handle(logging.makeLogRecord({"msg": lines.removesuffix("\n")}))

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        self._tell()

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            log.error("%s cannot be written", self.baseFilename, exc_info=True)
