from __future__ import annotations

import hashlib
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from msx_archiver.errors import ArchiveError, HostileArchiveError
from msx_archiver.extract import unpack_to
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.archiver.conftest import FILES, small_files_only, tree, write_tgz, write_zip


def sealed(files: dict[str, bytes], **claims: bytes) -> dict[str, bytes]:
    """With a manifest that lists the files; `claims` are digested in place of what is packed."""
    listed = {**files, **claims}
    entries = {name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in listed.items()}
    manifest = {"model": {"modelName": "m", "handler": "h"}, "files": entries}
    return {**files, "MAR-INF/MANIFEST.json": json.dumps(manifest).encode()}


def unpack_fails(archive: Path) -> str:
    before = sorted(archive.parent.iterdir())
    with pytest.raises(ArchiveError) as caught:
        unpack_to(archive, archive.parent / "out")
    assert sorted(archive.parent.iterdir()) == before, "something was left behind"
    return str(caught.value)


def test_files_arrive(mar: Path, tmp_path: Path) -> None:
    unpack_to(mar, tmp_path / "a" / "out")
    assert tree(tmp_path / "a" / "out") == FILES
    assert os.listdir(tmp_path / "a") == ["out"]


def test_into_an_empty_folder_but_no_other(mar: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    unpack_to(mar, tmp_path / "out")
    with pytest.raises(ArchiveError, match="already exists"):
        unpack_to(mar, tmp_path / "out")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_digests_agree(tmp_path: Path, compression: int) -> None:
    files = sealed({"a.bin": bytes(3 << 20), "b": b"", "c": b"text"})
    unpack_to(write_zip(tmp_path / "m.mar", list(files.items()), compression), tmp_path / "out")
    assert tree(tmp_path / "out") == files


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(("claimed", "word"), [(b"other", "digest"), (b"longer than", "has 5 bytes")])
def test_digests_differ(tmp_path: Path, compression: int, claimed: bytes, word: str) -> None:
    files = sealed({"a": b"12345"}, a=claimed)
    message = unpack_fails(write_zip(tmp_path / "m.mar", list(files.items()), compression))
    assert "'a'" in message
    assert word in message


def test_file_that_the_manifest_lists_is_missing(tmp_path: Path) -> None:
    files = sealed({"a": b"1"}, gone=b"2")
    assert "'gone' is in the manifest but not" in unpack_fails(write_zip(tmp_path / "m.mar", list(files.items())))


def test_file_that_the_manifest_does_not_list(tmp_path: Path) -> None:
    files = {"extra": b"", **sealed({"a": b"1"})}
    assert "'extra' is not in the manifest" in unpack_fails(write_zip(tmp_path / "m.mar", list(files.items())))


def test_weights_are_copied_by_the_kernel_from_block_to_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a file system that can share blocks does."""
    calls: list[tuple[int, int, int]] = []
    original = os.copy_file_range

    def record(source: int, target: int, size: int, offset: int, at: int) -> int:
        calls.append((size, offset % 4096, at % 4096))
        return original(source, target, size, offset, at)

    monkeypatch.setattr(os, "copy_file_range", record)
    (tmp_path / "w.ckpt").write_bytes(bytes(100_000))
    options = PackOptions(model_name="m", handler="mindir", serialized_file=f"{tmp_path}/w.ckpt", export_path=tmp_path)
    unpack_to(pack(options), tmp_path / "out")
    assert (tmp_path / "out/w.ckpt").read_bytes() == bytes(100_000)
    assert calls == [(100_000, 0, 0)]


def test_checksums_guard_archives_without_digests(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m.mar", list(FILES.items()), zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"return data", b"return DATA"))
    assert "h.py" in unpack_fails(path)


def test_hostile_archive_writes_nothing(tmp_path: Path) -> None:
    """The bad member is the last one, the others are fine."""
    path = write_zip(tmp_path / "m.mar", [*FILES.items(), ("../evil", b"x")])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(HostileArchiveError):
        unpack_to(path, tmp_path / "new" / "out")
    assert sorted(tmp_path.rglob("*")) == before


def test_links_of_a_tgz_become_files(tmp_path: Path) -> None:
    link = tarfile.TarInfo("sub/link.py")
    link.type, link.linkname = tarfile.SYMTYPE, "../h.py"
    unpack_to(write_tgz(tmp_path / "m.tgz", [(link, b""), *FILES.items()]), tmp_path / "out")
    assert (tmp_path / "out/sub/link.py").read_bytes() == FILES["h.py"]
    assert not (tmp_path / "out/sub/link.py").is_symlink()


def test_only_the_executable_bit_survives(tmp_path: Path) -> None:
    entries = [(tarfile.TarInfo(name), data) for name, data in FILES.items()]
    entries[0][0].mode, entries[1][0].mode = 0o6755, 0o666
    unpack_to(write_tgz(tmp_path / "m.tgz", list(entries)), tmp_path / "out")
    assert (tmp_path / "out/h.py").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "out/sub/data.bin").stat().st_mode & 0o7777 == 0o644


def test_disk_that_is_too_small_is_refused_at_once(mar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = type("Usage", (), {"free": 100})()
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    message = unpack_fails(mar)
    assert f"{mar} needs 2.1 KiB" in message
    assert "only 100 B left" in message


def test_disk_that_gets_full_meanwhile(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m.mar", [("zeros.bin", bytes(1 << 20)), *FILES.items()])
    with small_files_only():
        message = unpack_fails(path)
    assert message.startswith(f"{path} cannot be unpacked")
    assert "needs 1.0 MiB" in message
