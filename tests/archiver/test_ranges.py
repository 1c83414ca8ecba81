from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from msx_archiver import ranges
from msx_archiver.ranges import copy_range
from tests.archiver.conftest import small_files_only

DATA = os.urandom(1 << 20)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    return path


@pytest.fixture(params=["in the kernel", "refused by the kernel", "unknown to Python", "nothing is done"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def refuse(*args: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    if request.param == "refused by the kernel":
        monkeypatch.setattr(os, "copy_file_range", refuse)
    if request.param == "unknown to Python":
        monkeypatch.delattr(os, "copy_file_range")
    if request.param == "nothing is done":
        monkeypatch.setattr(os, "copy_file_range", lambda *args: 0)
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("offset", "size"), [(0, len(DATA)), (4096, 300_000), (7, 131_073), (5, 0)])
def test_part_arrives_with_its_digest(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int, size: int
) -> None:
    monkeypatch.setattr(ranges, "STEP", 1 << 16)
    done: list[int] = []
    with source.open("rb") as file, (tmp_path / "target").open("x+b") as target:
        entry = copy_range(file.fileno(), offset, size, target.fileno(), done.append)
    expected = DATA[offset : offset + size]
    assert (tmp_path / "target").read_bytes() == expected
    assert (entry.size, entry.sha256) == (size, hashlib.sha256(expected).hexdigest())
    assert sum(done) == size


@pytest.mark.usefixtures("way")
def test_source_that_ends_too_early(source: Path, tmp_path: Path) -> None:
    with (
        source.open("rb") as file,
        (tmp_path / "target").open("x+b") as target,
        pytest.raises(EOFError, match="1 bytes are missing"),
    ):
        copy_range(file.fileno(), 1, len(DATA), target.fileno())


@pytest.mark.usefixtures("way")
def test_full_disk(source: Path, tmp_path: Path) -> None:
    with (
        source.open("rb") as file,
        (tmp_path / "target").open("x+b") as target,
        small_files_only(),
        pytest.raises(OSError, match="File too large"),
    ):
        copy_range(file.fileno(), 0, len(DATA), target.fileno())


def test_digest_is_of_what_arrived(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(source: int, target: int, size: int, offset: int, at: int) -> int:
        return os.pwrite(target, bytes(size), at)

    monkeypatch.setattr(os, "copy_file_range", lie)
    with source.open("rb") as file, (tmp_path / "target").open("x+b") as target:
        entry = copy_range(file.fileno(), 0, len(DATA), target.fileno())
    assert entry.sha256 == hashlib.sha256(bytes(len(DATA))).hexdigest()
