"""The size of the cache of hub models."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from msx_archiver.uses import Uses
from msx_frontend.archives.hub.cache import shrink


def content(root: Path, home: str, name: str, *, used: int, size: int = 1000) -> Path:
    """Used at that second; its listing has no bytes. With `.part` at its end it is not whole."""
    folder = root / home / name
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "weights").write_bytes(bytes(size))
    marker = folder
    if not name.endswith(".part"):
        marker = folder / "listing.json"
        marker.touch()
    os.utime(marker, (used, used))
    return folder


@pytest.fixture
def contents(tmp_path: Path) -> list[Path]:
    """The longest unused first."""
    named = [("hf--a--1", "one"), ("hf--a--1", "two.part"), ("s3--b--2", "three"), ("hf--c--3", "four")]
    return [content(tmp_path, home, name, used=1000 + at) for at, (home, name) in enumerate(named)]


@pytest.mark.parametrize(("most", "left"), [(4000, 4), (3999, 3), (2000, 2), (1, 0), (0, 0)])
def test_the_longest_unused_goes_first(most: int, left: int, contents: list[Path], tmp_path: Path) -> None:
    removed = shrink(tmp_path, most, Uses(tmp_path / "users.lock"))
    assert removed == contents[: 4 - left]
    assert [path for path in contents if path.exists()] == contents[4 - left :]


def test_what_is_used_does_not_count(contents: list[Path], tmp_path: Path) -> None:
    other = Uses(tmp_path / "users.lock")
    other.hold("one")
    other.hold("two")
    assert shrink(tmp_path, 1000, Uses(tmp_path / "users.lock")) == [contents[2]]
    other.close()


def test_what_is_being_fetched_stays(contents: list[Path], tmp_path: Path) -> None:
    with (contents[0].parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert shrink(tmp_path, 0, Uses(tmp_path / "users.lock")) == contents[2:]


def test_other_files_are_left(tmp_path: Path) -> None:
    content(tmp_path, "own", "one", used=1)
    content(tmp_path, "hf--a--1", "one", used=1).joinpath("listing.json").unlink()
    assert shrink(tmp_path, 0, Uses(tmp_path / "users.lock")) == []
    assert shrink(tmp_path / "none", 0, Uses(tmp_path / "users.lock")) == []
