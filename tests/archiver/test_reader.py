from __future__ import annotations

import binascii
import contextlib
import gzip
import io
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msx_archiver.errors import ArchiveError, HostileArchiveError
from msx_archiver.guard import ArchiveLimits
from msx_archiver.reader import open_archive
from tests.archiver.conftest import FILES, MANIFEST, Entry, write_folder, write_tgz, write_zip

GOOD: list[Entry] = list(FILES.items())


def contents(path: Path) -> dict[str, bytes]:
    with open_archive(path) as archive:
        return {member.path: archive.read(member.path) for member in archive.files}


def refused(path: Path, limits: ArchiveLimits | None = None) -> str:
    with pytest.raises(HostileArchiveError) as caught:
        open_archive(path, limits)
    return str(caught.value)


def unusable(path: Path) -> str:
    with pytest.raises(ArchiveError) as caught:
        open_archive(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


# Formats: by content, whatever the file is called.


def test_zip(mar: Path) -> None:
    assert contents(mar) == FILES


def test_zip_called_tgz(mar: Path) -> None:
    assert contents(mar.rename(mar.with_name("m.tar.gz"))) == FILES


@pytest.mark.parametrize("root", ["", "./", "m/", "./m/"])
def test_tgz_with_and_without_its_first_folder(tmp_path: Path, root: str) -> None:
    entries = [(root + name, data) for name, data in GOOD]
    assert contents(write_tgz(tmp_path / "m.mar", entries)) == FILES


def test_tgz_of_a_folder_itself(tmp_path: Path) -> None:
    write_folder(tmp_path / "m", FILES)
    with tarfile.open(tmp_path / "m.tgz", "w:gz") as tar:
        tar.add(tmp_path / "m", arcname=".")
    assert contents(tmp_path / "m.tgz") == FILES


@pytest.mark.parametrize("inside", ["m", "m/only"])
def test_folder_or_the_only_folder_in_it(tmp_path: Path, inside: str) -> None:
    write_folder(tmp_path / inside, FILES)
    assert contents(tmp_path / "m") == FILES


def test_a_link_in_a_folder_has_the_size_of_its_file(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "m", FILES)
    (tmp_path / "weights").write_bytes(bytes(5_000))
    (root / "linked").symlink_to(tmp_path / "weights")
    with open_archive(root) as archive:
        assert next(member.size for member in archive.files if member.path == "linked") == 5_000


def test_a_link_in_a_folder_that_leads_nowhere_is_not_a_file(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "m", FILES)
    (root / "linked").symlink_to(tmp_path / "gone")
    assert contents(root) == FILES


def test_zip_with_one_folder_in_it(tmp_path: Path) -> None:
    assert contents(write_zip(tmp_path / "m.zip", [(f"m/{name}", data) for name, data in GOOD])) == FILES


def test_links_to_files_inside_a_tgz(tmp_path: Path) -> None:
    soft, hard = tarfile.TarInfo("m/sub/soft"), tarfile.TarInfo("m/hard")
    soft.type, soft.linkname = tarfile.SYMTYPE, "../h.py"
    hard.type, hard.linkname = tarfile.LNKTYPE, "m/sub/data.bin"
    entries: list[Entry] = [(soft, b""), *((f"m/{name}", data) for name, data in GOOD), (hard, b"")]
    found = contents(write_tgz(tmp_path / "m.tgz", entries))
    assert found["sub/soft"] == FILES["h.py"]
    assert found["hard"] == FILES["sub/data.bin"]


@pytest.mark.parametrize("ending", [".mar", "-store.mar", ".tar.gz"])
def test_archives_that_torch_model_archiver_made(ending: str) -> None:
    """Made by torch-model-archiver 0.12.0."""
    with open_archive(Path(__file__).parent / "data" / f"torch-model-archiver{ending}") as archive:
        assert {member.path for member in archive.files} == {
            ".dot", "a", "c.yaml", "h.py", "r.txt", "sub/b", "w.pt", "MAR-INF/MANIFEST.json"
        }  # fmt: skip
        assert archive.manifest.archiver_version == "0.12.0"
        assert archive.manifest.model.config_file == "c.yaml"
        assert archive.warnings == []
        assert archive.read("sub/b") == b"y\n"


# What is not an archive.


def test_missing(tmp_path: Path) -> None:
    assert "No such file" in unusable(tmp_path / "none.mar")


def test_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mar")
    assert "neither a file nor a folder" in unusable(tmp_path / "pipe.mar")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "is empty"),
        (b"hello", "neither a zip file"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "it is a pointer of Git LFS, not the file itself. Run",
        ),
        (b"<!DOCTYPE html>\n<title>Sign in</title>", "it is an HTML page. Download it again."),
        (b"PK\x03\x04", "damaged or truncated"),
        (b"\x1f\x8b\x08", "damaged or truncated"),
        (gzip.compress(b"no tar", mtime=0), "damaged or truncated"),
    ],
)
def test_not_an_archive(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "m.mar"
    path.write_bytes(content)
    assert word in unusable(path)


def test_without_manifest(tmp_path: Path) -> None:
    entries: list[Entry] = [("h.py", b""), ("x/y", b"")]
    for path in (write_zip(tmp_path / "a.mar", entries), write_tgz(tmp_path / "b.mar", entries)):
        assert "has no MAR-INF/MANIFEST.json" in unusable(path)
    assert "has no MAR-INF/MANIFEST.json" in unusable(write_folder(tmp_path / "c", {"h.py": b"", "x": b""}))


def test_bad_manifest_names_the_archive_and_the_key(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m.mar", [("MAR-INF/MANIFEST.json", b'{"model": {"modelName": 5}}')])
    assert "'model.modelName'" in unusable(path)


def test_unknown_key_is_a_warning(tmp_path: Path) -> None:
    manifest = b'{"model": {"modelName": "m", "handler": "h"}, "engine": 1}'
    with open_archive(write_zip(tmp_path / "m.mar", [("MAR-INF/MANIFEST.json", manifest)])) as archive:
        assert archive.warnings == ["Unknown key 'engine' in the manifest is ignored."]


@pytest.mark.parametrize("key", ["serializedFile", "modelFile", "configFile", "requirementsFile"])
@pytest.mark.parametrize("name", ["gone.bin", "/etc/passwd", "../x"])
def test_manifest_names_a_file_that_is_not_inside(tmp_path: Path, key: str, name: str) -> None:
    manifest = b'{"model": {"modelName": "m", "handler": "h", "%s": "%s"}}' % (key.encode(), name.encode())
    words = unusable(write_zip(tmp_path / "m.mar", [("MAR-INF/MANIFEST.json", manifest)]))
    assert f"'{key}' is '{name}'" in words


@pytest.mark.parametrize("write", [write_zip, write_tgz])
def test_truncated_anywhere(tmp_path: Path, write: Callable[[Path, list[Entry]], Path]) -> None:
    whole = write(tmp_path / "whole.mar", GOOD).read_bytes()
    for length in range(4, len(whole), 7):
        (tmp_path / "cut.mar").write_bytes(whole[:length])
        assert "damaged or truncated" in unusable(tmp_path / "cut.mar")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["zip", "tgz"]), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8)
)
def test_random_damage_is_an_archive_error_or_harmless(
    tmp_path: Path, kind: str, edits: list[tuple[float, int]]
) -> None:
    write = write_zip if kind == "zip" else write_tgz
    data = bytearray(write(tmp_path / "m.mar", GOOD).read_bytes())
    for where, value in edits:
        data[4 + int(where * (len(data) - 5))] = value
    (tmp_path / "m.mar").write_bytes(data)
    with contextlib.suppress(ArchiveError):
        contents(tmp_path / "m.mar")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_bytes_that_another_decompressor_refuses(tmp_path: Path, method: int) -> None:
    """The header says that they were compressed in another way."""
    data = bytearray(write_zip(tmp_path / "m.mar", GOOD).read_bytes())
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = data.index(signature)
        data[start + offset] = method
    (tmp_path / "m.mar").write_bytes(data)
    with pytest.raises(ArchiveError, match="damaged or truncated"):
        contents(tmp_path / "m.mar")


# Hostile archives: refused by the member's name.

BAD_NAMES = ["../evil", "a/../../evil", "/evil", "C:/evil", "..\\evil", "a\x07b"]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("write", [write_zip, write_tgz])
def test_names_that_leave_the_tree(tmp_path: Path, write: Callable[[Path, list[Entry]], Path], name: str) -> None:
    assert repr(name)[1:-1] in refused(write(tmp_path / "m.mar", [*GOOD, (name, b"x")]))


def test_zip_name_with_nul(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m.mar", [*GOOD, ("evil_py", b"x")])
    path.write_bytes(path.read_bytes().replace(b"evil_py", b"evil\0py"))
    assert "control character" in refused(path)


def test_zip_whose_extra_field_renames_a_member(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("nice")
    evil = b"../evil"
    payload = struct.pack("<BI", 1, binascii.crc32(b"nice")) + evil
    info.extra = struct.pack("<HH", 0x7075, len(payload)) + payload
    path = write_zip(tmp_path / "m.mar", [*GOOD, (info, b"x")])
    with zipfile.ZipFile(path) as archive:
        renamed = archive.infolist()[-1].filename != "nice"
    if not renamed:
        pytest.skip("this Python's zipfile does not know the field")
    assert "../evil" in refused(path)


def test_links_in_a_zip(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    assert "'link' is a link" in refused(write_zip(tmp_path / "m.mar", [*GOOD, (info, b"h.py")]))


def test_devices_in_a_zip(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("pipe")
    info.create_system, info.external_attr = 3, (stat.S_IFIFO | 0o666) << 16
    assert "'pipe' is a device" in refused(write_zip(tmp_path / "m.mar", [*GOOD, (info, b"")]))


def test_encrypted_member_of_a_zip(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m.mar", GOOD)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    assert "'h.py' is encrypted" in refused(path)


def test_the_same_name_twice(tmp_path: Path) -> None:
    twice: list[Entry] = [*GOOD, ("./h.py", b"evil")]
    assert "'./h.py' is there twice" in refused(write_zip(tmp_path / "a.mar", twice))
    assert "'./h.py' is there twice" in refused(write_tgz(tmp_path / "b.mar", twice))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("write", "root"), [(write_zip, ""), (write_tgz, "m/")])
def test_a_manifest_twice_is_the_last_one(
    tmp_path: Path, write: Callable[[Path, list[Entry]], Path], root: str
) -> None:
    """As torch-model-archiver packs a folder that it packed before."""
    older = [("MAR-INF/MANIFEST.json", MANIFEST.replace(b'"m"', b'"older"'))]
    path = write(tmp_path / "m.mar", [(root + str(name), data) for name, data in [*older, *GOOD]])
    assert contents(path) == FILES
    with open_archive(path) as archive:
        assert archive.manifest.model.model_name == "m"
        assert archive.unpacked_size == sum(map(len, FILES.values()))


def test_a_manifest_that_is_a_file_and_a_folder(tmp_path: Path) -> None:
    twice: list[Entry] = [*GOOD, ("MAR-INF/MANIFEST.json/", b"")]
    assert "is there twice" in refused(write_zip(tmp_path / "m.mar", twice))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_manifests_count_as_often_as_they_are_there(tmp_path: Path) -> None:
    many: list[Entry] = [("MAR-INF/MANIFEST.json", bytes(1000)) for _ in range(5)]
    limits = ArchiveLimits(max_size=3000)
    assert "exceeds the limit" in refused(write_tgz(tmp_path / "m.mar", [*many, *GOOD]), limits)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_exactly_the_same_name_twice(tmp_path: Path) -> None:
    assert "twice" in refused(write_zip(tmp_path / "m.mar", [*GOOD, ("h.py", b"evil")]))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["../../etc/passwd", "/etc/passwd", "sub", "gone"])
def test_links_in_a_tgz(tmp_path: Path, kind: bytes, target: str) -> None:
    info = tarfile.TarInfo("link")
    info.type, info.linkname = kind, target
    assert "'link' links" in refused(write_tgz(tmp_path / "m.mar", [*GOOD, (info, b"")]))


def test_file_through_a_link_in_a_tgz(tmp_path: Path) -> None:
    info = tarfile.TarInfo("link")
    info.type, info.linkname = tarfile.SYMTYPE, "h.py"
    assert "'link/evil' lies in 'link'" in refused(
        write_tgz(tmp_path / "m.mar", [*GOOD, (info, b""), ("link/evil", b"")])
    )


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_in_a_tgz(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("dev/thing")
    info.type = kind
    assert "'dev/thing' is a device" in refused(write_tgz(tmp_path / "m.mar", [*GOOD, (info, b"")]))


@pytest.mark.parametrize("write", [write_zip, write_tgz])
def test_bomb_by_ratio(tmp_path: Path, write: Callable[[Path, list[Entry]], Path]) -> None:
    path = write(tmp_path / "m.mar", [("bomb.bin", bytes(4 << 20)), *GOOD])
    assert "'bomb.bin' would unpack" in refused(path, ArchiveLimits(ratio_floor=1 << 20, max_ratio=100))


@pytest.mark.parametrize("write", [write_zip, write_tgz])
def test_bomb_by_count(tmp_path: Path, write: Callable[[Path, list[Entry]], Path]) -> None:
    path = write(tmp_path / "m.mar", [*((f"{i}", b"") for i in range(50)), *GOOD])
    assert "'30' exceeds the limit of 30 files" in refused(path, ArchiveLimits(max_members=30))


def test_tar_bomb_is_refused_by_its_header_alone(tmp_path: Path) -> None:
    """A header that claims a terabyte, and nothing behind it: it is not read to find out."""
    info = tarfile.TarInfo("huge")
    info.size = 1 << 40
    (tmp_path / "m.mar").write_bytes(gzip.compress(info.tobuf()))
    assert "'huge' would unpack" in refused(tmp_path / "m.mar")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_huge_tar_header_is_not_read_into_memory(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, 1 << 33
    (tmp_path / "m.mar").write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT)))
    assert "a header of" in unusable(tmp_path / "m.mar")


def test_endless_padding_behind_a_tar(tmp_path: Path) -> None:
    plain = io.BytesIO(gzip.decompress(write_tgz(tmp_path / "m.mar", GOOD).read_bytes()))
    (tmp_path / "m.mar").write_bytes(gzip.compress(plain.getvalue() + bytes(8 << 20)))
    assert "more after the last member" in unusable(tmp_path / "m.mar")


def test_damaged_end_of_a_tgz_is_seen(tmp_path: Path) -> None:
    path = write_tgz(tmp_path / "m.mar", GOOD)
    data = bytearray(path.read_bytes())
    data[-8] ^= 0xFF  # gzip's checksum, which tar alone would never read
    path.write_bytes(data)
    assert "CRC" in unusable(path)


def test_large_manifest_is_not_read(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m.mar", [("MAR-INF/MANIFEST.json", MANIFEST + b" " * (17 << 20))])
    assert "limit is 16.0 MiB" in unusable(path)
