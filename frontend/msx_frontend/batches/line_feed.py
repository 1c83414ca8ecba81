"""The lines of a batch that have no outcome yet, read ahead a few at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

from msx_frontend.batches.input_lines import Line, LineRules, digest_of, line_of, rows

MOST_AHEAD, MOST_BYTES = 64, 4 << 20
"""Lines that are read at a time, and their bytes."""


class LineFeed:
    def __init__(self, path: Path, rules: LineRules, done: set[bytes], threads: Executor) -> None:
        """`done`: digests of the lines that have an outcome; `threads` read the file."""
        self._threads = threads
        self._lines = _pending(path, rules, done)
        self._ahead: deque[Line] = deque()
        self.is_at_end = False
        """`next` has returned None."""

    async def next(self) -> Line | None:
        """None behind the last one. Raises OSError, and WrongLine for a file that was changed."""
        if not self._ahead:
            self._ahead.extend(await self.some())
        self.is_at_end = not self._ahead
        return self._ahead.popleft() if self._ahead else None

    async def some(self) -> list[Line]:
        """The next ones; empty behind the last. Raises what `next` does."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read)

    def _read(self) -> list[Line]:
        found: list[Line] = []
        size = 0
        for line in self._lines:
            found.append(line)
            size += len(line.body)
            if len(found) >= MOST_AHEAD or size >= MOST_BYTES:
                break
        return found


def _pending(path: Path, rules: LineRules, done: set[bytes]) -> Iterator[Line]:
    for number, data in rows(path, rules.longest):
        if not data:
            continue
        line = line_of(number, data, rules)
        if digest_of(line.custom_id) not in done:
            yield line
