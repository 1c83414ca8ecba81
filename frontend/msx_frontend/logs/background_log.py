"""Rotates the log of a server in the background, which is its stdout and stderr."""

import asyncio
import logging
import os
from pathlib import Path

from msx_frontend.logs.file_mode import DEFAULT, open_log, set_mode
from msx_frontend.logs.rotating import KEPT, MOST_BYTES

LOOK_EVERY = 10.0
"""Seconds."""

log = logging.getLogger("msx.server")


class BackgroundLog:
    def __init__(
        self, path: Path, most_bytes: int = MOST_BYTES, *, fds: tuple[int, ...] = (1, 2), file_mode: int = DEFAULT
    ) -> None:
        """Gives the log and the older ones their mode, `file_mode`."""
        self._path, self._most, self._fds, self._mode = path, most_bytes, fds, file_mode
        set_mode([path, *map(self._aside, range(1, KEPT + 1))], file_mode)

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                self.look()
            except OSError as error:
                log.error("%s cannot be moved aside: %s", self._path, error)
                return

    def look(self) -> None:
        """Rotate the log when it is too large, unless logrotate or the user has put another file in its place."""
        now = os.fstat(self._fds[0])
        if now.st_size < self._most or not os.path.samestat(now, self._path.stat()):
            return
        for number in reversed(range(1, KEPT)):
            if (older := self._aside(number)).exists():
                older.replace(self._aside(number + 1))
        self._path.rename(self._aside(1))
        fd = open_log(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, self._mode)
        for target in self._fds:
            os.dup2(fd, target)
        os.close(fd)

    def _aside(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
