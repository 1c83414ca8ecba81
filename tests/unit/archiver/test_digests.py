from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from msx_archiver import digests
from msx_archiver.digests import DigestFile


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file that was read whole."""
    seen: list[Path] = []
    original = digests._sha256

    def record(file: Path) -> str:
        seen.append(file)
        return original(file)

    monkeypatch.setattr(digests, "_sha256", record)
    return seen


def test_second_start_does_not_read_again(tmp_path: Path, reads: list[Path]) -> None:
    file = tmp_path / "m.mar"
    file.write_bytes(b"content")
    expected = hashlib.sha256(b"content").hexdigest()
    assert DigestFile(tmp_path / "d.json").of(file) == expected
    assert DigestFile(tmp_path / "d.json").of(file) == expected
    assert reads == [file]


def test_changed_file_is_read_again(tmp_path: Path, reads: list[Path]) -> None:
    file, known = tmp_path / "m.mar", DigestFile(tmp_path / "d.json")
    file.write_bytes(b"one")
    first = known.of(file)
    status = file.stat()
    replacement = tmp_path / "new"
    replacement.write_bytes(b"two")
    os.utime(replacement, ns=(status.st_atime_ns, status.st_mtime_ns))
    replacement.rename(file)  # same size and time: only the inode tells
    assert known.of(file) != first
    assert len(reads) == 2


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": 1}'])
def test_unreadable_memory_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "d.json").write_bytes(content)
    (tmp_path / "m.mar").write_bytes(b"x")
    assert DigestFile(tmp_path / "d.json").of(tmp_path / "m.mar") == hashlib.sha256(b"x").hexdigest()


def test_removed_files_are_forgotten(tmp_path: Path) -> None:
    known = DigestFile(tmp_path / "d.json")
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x")
        known.of(tmp_path / name)
        (tmp_path / "a").unlink(missing_ok=True)
    assert b'/a"' not in (tmp_path / "d.json").read_bytes()
