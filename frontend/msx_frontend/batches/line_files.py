"""The two files that a batch writes while it runs: they are its progress, too. Every method blocks."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from msx_frontend.batches.input_lines import digest_of
from msx_frontend.batches.outcome import LineOutcome
from msx_frontend.files.written import WrittenFile
from msx_frontend.store.spare import REPLIES, check_spare


class _Id(msgspec.Struct):
    custom_id: str


_id = msgspec.json.Decoder(_Id)


class WrittenLines(NamedTuple):
    """Contents of the files. `ids`: digests of the lines that have an outcome."""

    ids: set[bytes]
    completed: int
    failed: int


class LineFiles:
    """Methods raise ServiceUnavailable where the disk has no room, or fails; then nothing has changed."""

    def __init__(self, output: Path, error: Path) -> None:
        self.output = WrittenFile(output)
        self.error = WrittenFile(error)
        self._lock = threading.Lock()
        """Held while they are written: a batch that is closed meanwhile waits for that."""

    @property
    def size(self) -> int:
        return self.output.size + self.error.size

    def read(self) -> WrittenLines:
        """Read what an earlier server has written; a line that it did not end is cut off."""
        ids: set[bytes] = set()
        good, bad = _read(self.output, ids), _read(self.error, ids)
        return WrittenLines(ids, good, bad)

    def write(self, outcomes: Iterable[LineOutcome]) -> None:
        """All of them are on the disk, or none is: also where they took the room in which others are deleted."""
        sizes = self.output.size, self.error.size
        good = b"".join(one.data for one in outcomes if one.is_good)
        bad = b"".join(one.data for one in outcomes if not one.is_good)
        check_spare(self.output.path, len(good) + len(bad), REPLIES)
        with self._lock:
            try:
                for file, data in ((self.output, good), (self.error, bad)):
                    if data:
                        file.append(data)
                        file.save()
            except BaseException:
                self.output.cut(sizes[0])
                self.error.cut(sizes[1])
                raise

    def close(self) -> None:
        with self._lock:
            self.output.close()
            self.error.close()

    def end(self) -> None:
        """Put them on the disk, and remove what is empty."""
        for file in (self.output, self.error):
            file.save()
            if not file.size:
                file.path.unlink(missing_ok=True)
        folder = os.open(self.output.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(file: WrittenFile, ids: set[bytes]) -> int:
    """Add the lines of a file to `ids`; returns how many there are."""
    count = size = 0
    for data in _lines(file.path):
        try:
            ids.add(digest_of(_id.decode(data).custom_id))
        except (msgspec.DecodeError, UnicodeDecodeError):
            break  # a server was killed before the disk had all of it
        count, size = count + 1, size + len(data)
    file.cut(size)
    return count


def _lines(path: Path) -> Iterator[bytes]:
    """Whole lines."""
    with path.open("rb") as file:
        for data in file:
            if data.endswith(b"\n"):
                yield data
