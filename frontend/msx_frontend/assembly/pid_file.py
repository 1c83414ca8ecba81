"""TorchServe's pid file, for scripts that look there: `.model_server.pid` in the folder of temporary files."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import psutil

NAME = ".model_server.pid"
INEXACT = 2.0
"""Seconds by which the system may tell the start of a process too late."""


def temporary_folder(env: Mapping[str, str]) -> str | None:
    """The folder that a variable names."""
    return next((env[name] for name in ("TMPDIR", "TEMP", "TMP") if env.get(name)), None)


class PidFile:
    """The file of this server, or of the first of several. A failure to write it is ignored, because MSX does not need
    it."""

    def __init__(self, env: Mapping[str, str] = os.environ, pid: int | None = None) -> None:
        """`pid` is the one that it names; None: that of this process."""
        # The module tempfile, whose order this is, would want to write there, and a disk may be full.
        folder = temporary_folder(env) or "/tmp"  # noqa: S108 - a link is not followed
        self.path = Path(folder) / NAME
        self._pid = os.getpid() if pid is None else pid

    def write(self) -> None:
        if self._other_lives():
            return
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            with open(fd, "w") as file:
                file.write(str(self._pid))

    def remove(self) -> None:
        if self._read() == self._pid:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def remove_left(self) -> bool:
        """Remove it if the server that wrote it is gone. Raises OSError."""
        if self._read() is None or self.server() is not None:
            return False
        self.path.unlink()
        return True

    def server(self) -> int | None:
        """The process that wrote it; None where it has ended, or its number is that of a later process."""
        pid = self._read()
        with contextlib.suppress(OSError, ValueError, OverflowError, psutil.Error):  # a number may be no pid
            if pid is not None and self._wrote(psutil.Process(pid)):
                return pid
        return None

    def _wrote(self, process: psutil.Process) -> bool:
        """Whether a process that runs was there when the file was written. Raises psutil.Error, OSError."""
        is_old = process.create_time() <= self.path.stat().st_mtime + INEXACT
        return is_old and process.status() != psutil.STATUS_ZOMBIE  # which its parent may leave for long

    def _other_lives(self) -> bool:
        return self.server() not in (None, self._pid)

    def _read(self) -> int | None:
        with contextlib.suppress(OSError, ValueError):
            return int(self.path.read_text())
        return None
