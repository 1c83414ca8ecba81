"""Reads a server's log line by line while it is written."""

import contextlib
import io
import os
import threading
import time
from pathlib import Path
from queue import Empty, Full, Queue

import psutil

STARTED = b"Model server started"
LOOK_BACK = 1 << 20
"""Bytes that may be written between the line about the start and the first read."""

LOOK_EVERY = 0.1
"""Seconds."""


class LogTail(threading.Thread):
    """Prints the lines that come after the server's start and puts them into the queue; None at the server's end."""

    def __init__(self, path: Path, pid: int, queue: Queue[str | None]) -> None:
        super().__init__(name="server-log", daemon=True)
        self._path, self._pid, self._queue = path, pid, queue

    def run(self) -> None:
        try:
            self._follow()
        finally:
            self._end()

    def _follow(self) -> None:
        file = self._path.open("rb")
        _behind_the_start(file)
        alive = True
        while alive:
            alive = _is_alive(self._pid)
            self._tell(file)
            if self._moved_aside(file):
                self._tell(file)
                file.close()
                file = self._path.open("rb")
            elif alive:
                time.sleep(LOOK_EVERY)
        file.close()

    def _tell(self, file: io.BufferedReader) -> None:
        """Prints complete lines; an incomplete one is read again."""
        for line in file:
            if not line.endswith(b"\n"):
                file.seek(-len(line), os.SEEK_CUR)
                return
            text = line.decode(errors="replace")
            print(text, end="", flush=True)  # noqa: T201  # as TorchServe's launcher
            with contextlib.suppress(Full):
                self._queue.put_nowait(text)

    def _moved_aside(self, file: io.BufferedReader) -> bool:
        try:
            return not os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def _end(self) -> None:
        """Drops the oldest line that was not taken."""
        while True:
            try:
                return self._queue.put_nowait(None)
            except Full:
                with contextlib.suppress(Empty):
                    self._queue.get_nowait()


def _behind_the_start(file: io.BufferedReader) -> None:
    """The position after the last line about a start: the log may have those of earlier servers."""
    begin = max(0, file.seek(0, os.SEEK_END) - LOOK_BACK)
    file.seek(begin)
    text = file.read()
    found = text.rfind(STARTED)
    end = text.find(b"\n", found) + 1 if found >= 0 else 0
    file.seek(begin + (end or len(text)))


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
