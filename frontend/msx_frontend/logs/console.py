"""A copy of the log for the console of the command that started the server. A slow reader never delays the server."""

import logging
import os
import select
import threading
from collections import deque
from typing import Any, TextIO

MOST_BYTES = 1 << 20
"""Lines that may wait for a slow console; further lines are dropped."""

PIECE = 1 << 16

log = logging.getLogger("msx.server")


class Console:
    """Writes to the file descriptor on a thread. It stays in blocking mode, because the caller shares it."""

    def __init__(self, fd: int, most_bytes: int = MOST_BYTES) -> None:
        self._fd = fd
        self._most = most_bytes
        self._lines: deque[bytes] = deque()
        self._size = self._dropped = 0
        self._open = True
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        with self._changed:
            if not self._open or self._size + len(data) > self._most:
                self._dropped += data.count(b"\n")
                return
            self._lines.append(data)
            self._size += len(data)
            self._changed.notify_all()

    def close(self, limit: float) -> None:
        """Waiting lines have `limit` seconds to be read."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
        self._thread.join(limit)
        if self._thread.is_alive() or self._dropped:
            log.warning("The console was not read: %d lines of the log were not copied to it.", self._missed())

    def _missed(self) -> int:
        with self._changed:
            return self._dropped + sum(data.count(b"\n") for data in self._lines)

    def _run(self) -> None:
        try:
            while self._next():
                self._write(self._lines[0])
                with self._changed:
                    self._size -= len(self._lines.popleft())
                self._tell()
        except OSError as error:
            log.warning("The server has stopped copying its log to the console: %s.", error.strerror)
        finally:
            with self._changed:
                self._open = False
                self._lines.clear()
            os.close(self._fd)

    def _next(self) -> bool:
        """Wait for the next line; False at the end."""
        with self._changed:
            while self._open and not self._lines:
                self._changed.wait()
            return bool(self._lines)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left[:PIECE]) :]
            except BlockingIOError:  # the caller made it so
                select.select([], [self._fd], [])

    def _tell(self) -> None:
        """Log the number of dropped lines, once the console has read the others."""
        with self._changed:
            dropped = 0 if self._lines or not self._open else self._dropped
            self._dropped -= dropped
        if dropped:
            log.warning("The console was read too late: %d lines of the log were not copied to it.", dropped)


class CopiedStream:
    """A stream whose text is also written to the console."""

    def __init__(self, stream: TextIO, console: Console) -> None:
        self._stream, self._console = stream, console

    def write(self, text: str) -> int:
        self._console.write(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
