"""A log file with a size limit: a full file is renamed, and the oldest one is removed."""

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from msx_frontend.logs.file_mode import DEFAULT, open_log, set_mode

MOST_BYTES = 100 << 20
KEPT = 5
"""TorchServe's limits."""

log = logging.getLogger("msx.server")


class RotatingFile(RotatingFileHandler):
    """A handler for a logger, or a file of whole lines by `write`. It is opened by its first line or by `create`.

    Lines that cannot be written are lost; the first failure is logged.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES, *, file_mode: int = DEFAULT) -> None:
        super().__init__(path, maxBytes=most_bytes, backupCount=KEPT, delay=True, encoding="utf-8", errors="replace")
        self._file_mode, self._told = file_mode, False

    def create(self) -> None:
        """Create the file before its first line, for programs that follow it; older ones get its mode."""
        set_mode([Path(f"{self.baseFilename}.{number}") for number in range(1, KEPT + 1)], self._file_mode)
        try:
            self._open().close()
        except OSError:
            self._tell()

    def write(self, lines: str) -> None:
        if lines:
            self.handle(logging.makeLogRecord({"msg": lines.removesuffix("\n")}))

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        fd = open_log(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, self._file_mode)
        return open(fd, "a", encoding=self.encoding, errors=self.errors)

    def handleError(self, record: logging.LogRecord) -> None:
        self._tell()

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            log.error("%s cannot be written", self.baseFilename, exc_info=True)
