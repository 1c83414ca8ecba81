from __future__ import annotations

import os
from pathlib import Path

import pytest

from msx_archiver.digests import DigestFile, stamp


class Computing:
    """Counts how often a file is read for its digest."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self.reads: list[bytes] = []

    def digest(self, file: Path) -> str:
        def compute() -> str:
            self.reads.append(file.read_bytes())
            return f"digest of {file.read_text()}"

        return DigestFile(self._memory).of(file, stamp(file), compute)


@pytest.fixture
def computing(tmp_path: Path) -> Computing:
    return Computing(tmp_path / "d.json")


def test_second_start_does_not_read_again(tmp_path: Path, computing: Computing) -> None:
    file = tmp_path / "m.mar"
    file.write_bytes(b"content")
    assert [computing.digest(file) for _ in range(2)] == ["digest of content"] * 2
    assert computing.reads == [b"content"]


def test_changed_file_is_read_again(tmp_path: Path, computing: Computing) -> None:
    file = tmp_path / "m.mar"
    file.write_bytes(b"one")
    computing.digest(file)
    status = file.stat()
    replacement = tmp_path / "new"
    replacement.write_bytes(b"two")
    os.utime(replacement, ns=(status.st_atime_ns, status.st_mtime_ns))
    replacement.rename(file)  # same size and time: only the inode tells
    assert computing.digest(file) == "digest of two"


def test_file_changed_meanwhile_is_not_remembered(tmp_path: Path) -> None:
    file, known = tmp_path / "m.mar", DigestFile(tmp_path / "d.json")
    file.write_bytes(b"one")
    opened = stamp(file)
    file.write_bytes(b"other")
    assert known.of(file, opened, lambda: "of one") == "of one"
    assert known.recall(file) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": 1}'])
def test_unreadable_memory_is_an_empty_one(tmp_path: Path, computing: Computing, content: bytes) -> None:
    (tmp_path / "d.json").write_bytes(content)
    (tmp_path / "m.mar").write_bytes(b"x")
    assert computing.digest(tmp_path / "m.mar") == "digest of x"


def test_removed_files_are_forgotten(tmp_path: Path, computing: Computing) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x")
        computing.digest(tmp_path / name)
        (tmp_path / "a").unlink(missing_ok=True)
    assert b'/a"' not in (tmp_path / "d.json").read_bytes()
