from __future__ import annotations

from pathlib import Path

import pytest

from msx_archiver.contents import verify
from msx_archiver.errors import ArchiveError
from msx_archiver.reader import open_archive
from tests.archiver.conftest import write_folder, write_tgz, write_zip
from tests.archiver.test_extract import sealed


@pytest.mark.parametrize("write", [write_zip, write_tgz])
def test_whole(tmp_path: Path, write: object) -> None:
    assert callable(write)
    path = write(tmp_path / "m.mar", list(sealed({"a": b"1", "b/c": b"2"}).items()))
    seen: list[int] = []
    with open_archive(path) as archive:
        assert verify(archive, seen.append) == 2
        assert sum(seen) == archive.unpacked_size


def test_all_that_differs_is_named(tmp_path: Path) -> None:
    files = {"extra": b"", **sealed({"a": b"1", "b": b"2"}, a=b"x", gone=b"")}
    with open_archive(write_folder(tmp_path / "m", files)) as archive, pytest.raises(ArchiveError) as caught:
        verify(archive)
    for word in ("'a' does not have the digest", "'gone' is in the manifest but not", "'extra' is not in"):
        assert word in str(caught.value)
    assert "'b'" not in str(caught.value)


def test_without_digests_the_checksums_are_read(mar: Path) -> None:
    with open_archive(mar) as archive:
        assert verify(archive) == 2
