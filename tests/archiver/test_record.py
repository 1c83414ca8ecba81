"""Changes in the cache after unpacking are noticed, and the archive is unpacked again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from msx_archiver import record
from msx_archiver.cache import ArchiveCache, UnpackedModel
from tests.archiver.conftest import write_zip
from tests.archiver.test_extract import sealed

FILES = {"h.py": b"handler", "weights.bin": bytes(range(256))}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """With the digests of its files."""
    return write_zip(tmp_path / "m.mar", list(sealed(FILES).items()))


@pytest.fixture
def cache(tmp_path: Path) -> ArchiveCache:
    return ArchiveCache(tmp_path / "cache")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read for their digest."""
    names: list[str] = []
    digest = record.digest

    def look(file: Path) -> str:
        names.append(file.name)
        return digest(file)

    monkeypatch.setattr(record, "digest", look)
    return names


def other_bytes(folder: Path) -> None:
    """As many as before, and with the old time."""
    file = folder / "weights.bin"
    before = file.stat()
    file.write_bytes(bytes(256))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def removed(folder: Path) -> None:
    (folder / "weights.bin").unlink()


def all_removed(folder: Path) -> None:
    shutil.rmtree(folder.parent)


def replaced_by_a_folder(folder: Path) -> None:
    (folder / "weights.bin").unlink()
    (folder / "weights.bin").mkdir()


@pytest.mark.parametrize("change", [other_bytes, removed, replaced_by_a_folder])
def test_a_change_is_noticed_and_unpacked_again_with_a_warning(
    cache: ArchiveCache, archive: Path, change: Callable[[Path], None]
) -> None:
    first = cache.unpack(archive)
    assert cache.is_intact(first.digest)
    change(first.path)
    assert not cache.is_intact(first.digest)
    again = cache.unpack(archive)
    assert (again.path, again.digest) == (first.path, first.digest)
    assert again.warnings == [
        f"'weights.bin' was changed or removed in {first.path} since it was unpacked: it is unpacked again"
    ]
    assert (again.path / "weights.bin").read_bytes() == FILES["weights.bin"]
    assert cache.is_intact(first.digest)
    assert cache.unpack(archive).warnings == []


def test_a_cache_that_was_deleted_is_made_again(cache: ArchiveCache, archive: Path) -> None:
    first = cache.unpack(archive)
    all_removed(first.path)
    assert not cache.is_intact(first.digest)
    assert (cache.unpack(archive).path / "weights.bin").read_bytes() == FILES["weights.bin"]


def test_another_time_or_inode_alone_is_not_a_change(cache: ArchiveCache, archive: Path, read: list[str]) -> None:
    """A copy of the cache is as good as the cache; its files are read once."""
    first = cache.unpack(archive)
    shutil.copytree(first.path, aside := first.path.with_name("aside"))
    shutil.rmtree(first.path)
    aside.rename(first.path)
    os.utime(first.path / "h.py")
    read.clear()
    assert cache.is_intact(first.digest)
    assert sorted(read) == ["MANIFEST.json", "h.py", "weights.bin"]
    read.clear()
    assert cache.is_intact(first.digest)
    assert cache.unpack(archive).warnings == []
    assert read == []


def test_a_large_file_of_an_archive_without_digests_is_unpacked_again(cache: ArchiveCache, tmp_path: Path) -> None:
    """Without a digest its content is unknown; of a small file the digest was taken."""
    large = bytes(record.SMALL + 1)
    manifest = b'{"model": {"modelName": "m", "handler": "h.py"}}'
    entries = [("h.py", b"handler"), ("large.bin", large), ("MAR-INF/MANIFEST.json", manifest)]
    first = cache.unpack(write_zip(tmp_path / "m.mar", entries))
    os.utime(first.path / "h.py")
    assert cache.is_intact(first.digest)
    os.utime(first.path / "large.bin")
    assert not cache.is_intact(first.digest)
    assert "'large.bin' was changed" in cache.unpack(tmp_path / "m.mar").warnings[0]


def forgotten(cache: ArchiveCache, first: UnpackedModel) -> Path:
    path = cache.root / f".record-{first.digest}"
    path.unlink()
    return path


def test_without_a_record_the_digests_decide(cache: ArchiveCache, archive: Path) -> None:
    """It was unpacked by an older version, or the disk was full."""
    first = cache.unpack(archive)
    path = forgotten(cache, first)
    assert cache.unpack(archive).warnings == []
    assert path.exists()
    forgotten(cache, first)
    other_bytes(first.path)
    assert "'weights.bin' was changed" in cache.unpack(archive).warnings[0]


def test_the_record_goes_with_its_content(cache: ArchiveCache, archive: Path) -> None:
    digest = cache.unpack(archive).digest
    cache.remove(digest)
    assert not list(cache.root.glob(f".record-{digest}*"))
    digest = cache.unpack(archive).digest
    cache.clean({})
    assert [entry.name for entry in cache.root.iterdir() if digest in entry.name] == []
