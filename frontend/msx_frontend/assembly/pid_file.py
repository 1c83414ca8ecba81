"""TorchServe's pid file, for scripts that look there: `.model_server.pid` in the folder of temporary files."""

import contextlib
import os
from pathlib import Path

import psutil

NAME = ".model_server.pid"


class PidFile:
    """The file of this server, or of the first of several. A failure to write it is ignored, because MSX does not need
    it."""

    def __init__(self) -> None:
        env = os.environ  # the module tempfile would want to write there, and a disk may be full
        self.path = Path(env.get("TEMP") or env.get("TMPDIR") or "/tmp") / NAME  # noqa: S108 - a link is not followed

    def write(self) -> None:
        if self._other_lives():
            return
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            with open(fd, "w") as file:
                file.write(str(os.getpid()))

    def remove(self) -> None:
        if self._read() == os.getpid():
            with contextlib.suppress(OSError):
                self.path.unlink()

    def remove_left(self) -> bool:
        """Remove it if the server that wrote it is gone. Raises OSError."""
        pid = self._read()
        if pid is None or psutil.pid_exists(pid):
            return False
        self.path.unlink()
        return True

    def _other_lives(self) -> bool:
        pid = self._read()
        return pid is not None and pid != os.getpid() and psutil.pid_exists(pid)

    def _read(self) -> int | None:
        with contextlib.suppress(OSError, ValueError):
            return int(self.path.read_text())
        return None
