"""Errors of a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from msx_archiver.cache import ArchiveCache
from msx_archiver.errors import ArchiveError
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_archiver.room import room, why
from tests.archiver.conftest import FILES, write_zip
from tests.disks import fill, small_disk


def full(code: int = errno.ENOSPC) -> OSError:
    return OSError(code, os.strerror(code))


def test_a_full_disk_says_what_is_needed_and_what_is_left(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        fill(disk, leave=8 << 10)
        said = why(full(), disk / "not" / "there", 1536)
        assert said == "No space left on device (it needs 1.5 KiB, and its disk has 8.0 KiB left)"
        assert why(full(errno.EDQUOT), disk).endswith("(its disk has 8.0 KiB left)")


def test_other_errors_say_what_they_are(tmp_path: Path) -> None:
    assert why(full(errno.EACCES), tmp_path, 1536) == "Permission denied"
    assert why(OSError("odd"), tmp_path) == "odd"


def test_a_disk_of_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = type("Answer", (), {"f_files": 10, "f_favail": 0, "f_bavail": 99, "f_frsize": 4096})
    monkeypatch.setattr(os, "statvfs", lambda path: answer)
    assert room(tmp_path) == "its disk has no room for another file"


def test_an_archive_that_fills_the_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen before, and again when the disk gets full meanwhile."""
    path = write_zip(tmp_path / "m.mar", [("zeros.bin", bytes(1 << 20)), *FILES.items()])
    with small_disk(tmp_path / "disk", 256 << 10) as disk:
        cache = ArchiveCache(disk / "models")
        with pytest.raises(ArchiveError, match=r"m\.mar needs 1\.0 MiB to be unpacked, but .*models has only \d+"):
            cache.unpack(path)
        monkeypatch.setattr("msx_archiver.cache.check_room", lambda *_: None)
        words = (
            r"m\.mar cannot be unpacked into .*models: No space left on device: it needs 1\.0 MiB, and its disk has "
        )
        with pytest.raises(ArchiveError, match=words):
            cache.unpack(path)
        assert [entry.name for entry in cache.root.iterdir() if entry.name != "digests.json"] == []
        fill(disk)
        with pytest.raises(ArchiveError, match=r"m\.mar cannot be unpacked into .*models: No space left on device"):
            cache.unpack(path)
        assert [entry.name for entry in cache.root.iterdir() if entry.name != "digests.json"] == []


def test_an_archive_that_is_packed_onto_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "h.py").write_text("def handle(data, context): ...")
    (tmp_path / "large.bin").write_bytes(os.urandom(1 << 20))
    with small_disk(tmp_path / "disk", 256 << 10) as disk:
        options = PackOptions(
            model_name="m",
            handler=str(tmp_path / "h.py"),
            extra_files=str(tmp_path / "large.bin"),
            export_path=disk,
        )
        with pytest.raises(ArchiveError, match=r"it needs about 1\.0 MiB: No space left on device \(its disk has \d+"):
            pack(options)
        assert list(disk.iterdir()) == []
