from __future__ import annotations

import hashlib
import tarfile
import zipfile
from pathlib import Path

import pytest

from msx_archiver.identity import content_digest
from msx_archiver.reader import open_archive
from tests.archiver.conftest import Entry, write_tgz, write_zip
from tests.archiver.test_extract import sealed


def digest(path: Path) -> str:
    with open_archive(path) as archive:
        return content_digest(archive)


def test_without_digests_all_bytes_count(mar: Path) -> None:
    assert digest(mar) == hashlib.sha256(mar.read_bytes()).hexdigest()


def test_with_digests_how_it_is_packed_does_not_matter(tmp_path: Path) -> None:
    entries: list[Entry] = list(sealed({"a": b"1" * 9, "sub/b": b""}).items())
    packed = [
        write_zip(tmp_path / "deflated.mar", entries),
        write_zip(tmp_path / "stored.mar", entries[::-1], zipfile.ZIP_STORED),
        write_tgz(tmp_path / "m.tgz", entries),
    ]
    assert len({digest(path) for path in packed}) == 1


def executable() -> tarfile.TarInfo:
    info = tarfile.TarInfo("a")
    info.mode = 0o755
    return info


@pytest.mark.parametrize(
    "other",
    [
        list(sealed({"a": b"2"}).items()),
        list(sealed({"b": b"1"}).items()),
        [("empty/", b""), *sealed({"a": b"1"}).items()],
        [(executable(), b"1"), *list(sealed({"a": b"1"}).items())[1:]],
    ],
    ids=["other content", "other name", "a folder more", "executable"],
)
def test_with_digests_whatever_is_unpacked_matters(tmp_path: Path, other: list[Entry]) -> None:
    plain = write_tgz(tmp_path / "plain.tgz", list(sealed({"a": b"1"}).items()))
    assert digest(plain) != digest(write_tgz(tmp_path / "other.tgz", other))
