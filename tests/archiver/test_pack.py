from __future__ import annotations

import errno
import hashlib
import json
import os
import tarfile
import time
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from msx_archiver import writers
from msx_archiver.contents import verify
from msx_archiver.errors import PackError
from msx_archiver.extract import unpack_to
from msx_archiver.formats import FORMATS
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_archiver.reader import open_archive
from tests.archiver.conftest import HANDLER, small_files_only, tree, write_folder

InFolder = Callable[..., Path]
FORMAT_NAMES = {"default": "m.mar", "zip-store": "m.mar", "tgz": "m.tar.gz", "no-archive": "m"}


def options(**changes: Any) -> PackOptions:
    return PackOptions(**{"model_name": "m", "handler": "h.py", **changes})


def manifest_of(path: Path) -> dict[str, Any]:
    with open_archive(path) as archive:
        found: dict[str, Any] = json.loads(archive.read("MAR-INF/MANIFEST.json"))
    return found


def refused(**changes: Any) -> str:
    before = tree(Path())
    with pytest.raises(PackError) as caught:
        pack(options(**changes))
    assert tree(Path()) == before, "something was left behind or replaced"
    return str(caught.value)


@pytest.mark.parametrize("archive_format", FORMATS)
def test_every_format_holds_the_files_and_their_digests(in_folder: InFolder, archive_format: str) -> None:
    in_folder(h__py=HANDLER, w__ckpt=os.urandom(1 << 16), net__py="class Net: ...")
    made = pack(
        options(serialized_file="w.ckpt", model_file="net.py", archive_format=archive_format, export_path=Path("out"))
    )
    assert made == Path("out", FORMAT_NAMES[archive_format])
    assert os.listdir("out") == [made.name]
    with open_archive(made) as archive:
        assert verify(archive) == 3
    unpack_to(made, Path("back"))
    for name in ("h.py", "w.ckpt", "net.py"):
        assert Path("back", name).read_bytes() == Path(name).read_bytes()


def test_manifest_is_torchserves_with_digests(in_folder: InFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    in_folder(h__py=HANDLER, w__ckpt=b"w", net__py="", requirements__txt="six", c__yaml="batchSize: 4")
    made = pack(
        options(
            version="2.1",
            serialized_file="./w.ckpt",
            model_file="net.py",
            requirements_file="requirements.txt",
            config_file="c.yaml",
            runtime="python3",
        )
    )
    manifest = manifest_of(made)
    digest = hashlib.sha256(b"w").hexdigest()
    assert manifest.pop("archiverVersion")
    assert manifest.pop("files")["w.ckpt"] == {"size": 1, "sha256": digest}
    assert manifest == {
        "createdOn": "14/11/2023 22:13:20",
        "runtime": "python3",
        "model": {
            "modelName": "m",
            "modelVersion": "2.1",
            "handler": "h.py",
            "serializedFile": "w.ckpt",
            "modelFile": "net.py",
            "requirementsFile": "requirements.txt",
            "configFile": "c.yaml",
        },
    }


def test_manifest_is_the_last_member(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER, zzz="")
    with zipfile.ZipFile(pack(options(extra_files="zzz"))) as made:
        assert made.namelist()[-1] == "MAR-INF/MANIFEST.json"
    with tarfile.open(pack(options(archive_format="tgz"))) as made:
        assert made.getnames() == ["m/h.py", "m/MAR-INF/MANIFEST.json"]


@pytest.mark.parametrize("archive_format", ["default", "zip-store", "tgz"])
def test_same_input_and_date_give_the_same_bytes(
    in_folder: InFolder, monkeypatch: pytest.MonkeyPatch, archive_format: str
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    in_folder(h__py=HANDLER, b="b", a="a")
    first = pack(options(extra_files="b,a", archive_format=archive_format, export_path=Path("one")))
    for name in ("h.py", "a", "b"):
        os.utime(name, (1, 1))
    Path("a").chmod(0o600)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    monkeypatch.setattr(time, "localtime", lambda *moment: time.gmtime(0))
    second = pack(options(extra_files="a,b", archive_format=archive_format, export_path=Path("two")))
    assert first.read_bytes() == second.read_bytes()


def test_date_before_1980_suits_zip(in_folder: InFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    in_folder(h__py=HANDLER)
    assert manifest_of(pack(options()))["createdOn"] == "01/01/1970 00:00:00"


def test_wrong_date_is_refused(in_folder: InFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    in_folder(h__py=HANDLER)
    assert "SOURCE_DATE_EPOCH is 'yesterday'" in refused()


def test_weights_are_stored_and_text_is_deflated(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER * 100, w__CKPT=bytes(1000), large=bytes(2 << 20), words__txt=b"word " * (1 << 19))
    with zipfile.ZipFile(pack(options(extra_files="w.CKPT,large,words.txt"))) as made:
        stored = {info.filename for info in made.infolist() if info.compress_type == zipfile.ZIP_STORED}
    assert stored == {"w.CKPT", "large"}
    with zipfile.ZipFile(pack(options(archive_format="zip-store", force=True))) as made:
        assert {info.compress_type for info in made.infolist()} == {zipfile.ZIP_STORED}


@pytest.mark.parametrize("large", [1 << 30, 1 << 14], ids=["32-bit headers", "64-bit headers"])
def test_weights_begin_where_a_block_of_the_disk_may(
    in_folder: InFolder, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(writers, "_LARGE", large)
    sizes = {f"{'w' * count}ü.ckpt": 5000 * count for count in range(1, 9)}
    in_folder(h__py=HANDLER)
    for name, size in sizes.items():
        Path(name).write_bytes(name.encode() * (size // 8))
    path = pack(options(extra_files="*.ckpt"))
    with open_archive(path) as archive:
        assert verify(archive) == 9
        for member in archive.files:
            if member.path.endswith(".ckpt"):
                with archive.view(member) as (data, start, end):
                    assert start % 4096 == 0
                    assert data[start:end] == Path(member.path).read_bytes()
    with zipfile.ZipFile(path) as made:
        assert made.testzip() is None


@pytest.mark.parametrize("name", ["a b", "../m", "", "-m", "m/n", "ü", "m\n"])
def test_model_name(in_folder: InFolder, name: str) -> None:
    in_folder(h__py=HANDLER)
    assert "special characters" in refused(model_name=name)


def test_names_have_an_end(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    assert refused(model_name="m" * 201).endswith("It has 201 characters, and 200 are the most.")
    assert refused(version="1" * 201).endswith("could not be served: it has 201 characters, and 200 are the most.")


@pytest.mark.parametrize("version", ["1 0", "1/0", "..", "all", "-1", "1\n"])
def test_a_version_that_could_not_be_served(in_folder: InFolder, version: str) -> None:
    in_folder(h__py=HANDLER)
    assert "could not be served" in refused(version=version)


@pytest.mark.parametrize("version", ["1.0", "2", "1.0+cpu", "allround", "2026-11-21_a"])
def test_model_version(in_folder: InFolder, version: str) -> None:
    in_folder(h__py=HANDLER)
    assert pack(options(version=version)).is_file()


@pytest.mark.parametrize("archive_format", FORMATS)
def test_existing_archive_needs_force(in_folder: InFolder, archive_format: str) -> None:
    in_folder(h__py=HANDLER)
    made = pack(options(archive_format=archive_format))
    assert f"{made} already exists. Give --force/-f" in refused(archive_format=archive_format)
    pack(options(archive_format=archive_format, version="2.0", force=True))
    assert manifest_of(made)["model"]["modelVersion"] == "2.0"
    assert {path.name for path in Path().iterdir()} == {"h.py", made.name}


def test_force_does_not_overwrite_what_is_not_a_model(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    write_folder(Path("m"), {"precious.txt": b"data"})
    assert "is not a model of this format" in refused(archive_format="no-archive", force=True)
    Path("m.mar").mkdir()
    assert "is not a model of this format" in refused(force=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"serialized_file": "gone.ckpt"}, "--serialized-file: 'gone.ckpt' does not exist"),
        ({"model_file": "gone.py"}, "--model-file: 'gone.py' does not exist"),
        ({"requirements_file": "gone.txt"}, "--requirements-file: 'gone.txt' does not exist"),
        ({"config_file": "gone.yaml"}, "--config-file: 'gone.yaml' does not exist"),
        ({"extra_files": "h.py,gone"}, "--extra-files: 'gone' does not exist"),
        ({"serialized_file": "folder"}, "--serialized-file: 'folder' is not a file"),
        ({"handler": "nothing"}, "Handler 'nothing' is neither"),
        ({"handler": "bad.py"}, "bad.py, line 1"),
        ({"model_file": "bad.py"}, "bad.py, line 1"),
        ({"config_file": "bad.yaml"}, "bad.yaml: batchSize"),
        ({"serialized_file": "bad.mindir"}, "bad.mindir is not a MindIR file"),
        ({"version": ""}, "version is empty"),
        ({"archive_format": "rar"}, "--archive-format 'rar' is unknown"),
        ({"runtime": "ruby"}, "--runtime 'ruby' is unknown"),
    ],
)
def test_refused_before_anything_is_written(in_folder: InFolder, changes: dict[str, str], words: str) -> None:
    in_folder(h__py=HANDLER, bad__py="def (", bad__yaml="batchSize: many", bad__mindir="PK")
    Path("folder").mkdir()
    assert words in refused(**changes)


def test_two_different_files_for_one_place(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    write_folder(Path("other"), {"h.py": b"x = 1"})
    assert "'other/h.py' and 'h.py' differ, and both would be packed as 'h.py'" in refused(extra_files="other")
    write_folder(Path("other"), {"h.py": HANDLER})
    pack(options(extra_files="other,h.py"))


def test_warnings_are_told(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER, c__yaml="batchsize: 4")
    told: list[str] = []
    pack(options(config_file="c.yaml", extra_files="*.none"), warn=told.append)
    assert any("batchSize" in sentence for sentence in told)
    assert any("'*.none'" in sentence for sentence in told)


def test_own_archive_is_not_packed_again(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    pack(options(extra_files="."))
    told: list[str] = []
    made = pack(options(extra_files=".", force=True), warn=told.append)
    assert manifest_of(made)["files"].keys() == {"h.py"}
    assert "m.mar is left out" in told[0]


def test_unpacked_model_can_be_packed_again(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER, w__ckpt=b"w")
    first = pack(options(serialized_file="w.ckpt"))
    unpack_to(first, Path("back"))
    again = pack(options(handler="back/h.py", serialized_file="back/w.ckpt", extra_files="back", force=True))
    assert manifest_of(again)["files"].keys() == {"h.py", "w.ckpt"}


@pytest.mark.parametrize("archive_format", FORMATS)
def test_full_disk_leaves_the_old_archive(in_folder: InFolder, archive_format: str) -> None:
    in_folder(h__py=HANDLER)
    pack(options(archive_format=archive_format))
    Path("large.bin").write_bytes(os.urandom(1 << 20))
    with small_files_only():
        words = refused(archive_format=archive_format, extra_files="large.bin", force=True)
    assert "cannot be written, it needs about 1.0 MiB: File too large" in words


def test_export_path_that_is_a_file(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER, out="")
    assert "out/m.mar cannot be written" in refused(export_path=Path("out"))


@pytest.mark.parametrize("name", ["m.mar", "m.war", "m.tar.gz", "m.tgz", "m.zip", "out/m.mar"])
def test_export_path_that_is_meant_to_be_the_file(in_folder: InFolder, name: str) -> None:
    in_folder(h__py=HANDLER)
    assert refused(export_path=Path(name)) == f"--export-path {name} names a folder: give -o {name} to name the file."
    Path(name).mkdir(parents=True)
    assert pack(options(export_path=Path(name))) == Path(name, "m.mar")


@pytest.mark.parametrize(
    ("archive_format", "held", "offered"),
    [("default", "m.mar", "m-2.mar"), ("tgz", "m.tar.gz", "m-2.tar.gz"), ("no-archive", "m", "m-2")],
)
def test_another_version_is_offered_a_file(in_folder: InFolder, archive_format: str, held: str, offered: str) -> None:
    in_folder(h__py=HANDLER)
    here: dict[str, Any] = {"archive_format": archive_format, "export_path": Path()}
    pack(options(**here))
    words = f"{held} already exists, and holds version 1.0 of m. Give -o {offered} to make another one, or --force/-f"
    assert words in refused(**here, version="2")
    made = pack(options(**here, version="2", output=Path(offered)))
    assert made == Path(offered)
    assert manifest_of(made)["model"]["modelVersion"] == "2"
    assert "holds version 1.0 of m. Give -o FILE to make another one" in refused(**here, version="2")


@pytest.mark.parametrize(
    ("archive_format", "output"),
    [("default", "m.tgz"), ("zip-store", "m"), ("tgz", "m.mar"), ("no-archive", "m.mar"), ("no-archive", "m.war")],
)
def test_output_of_another_format(in_folder: InFolder, archive_format: str, output: str) -> None:
    in_folder(h__py=HANDLER)
    refusal = refused(archive_format=archive_format, output=Path(output))
    assert f"-o {output} does not fit the format of the archive: " in refusal


def test_output_that_is_a_folder(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    Path("store").mkdir()
    assert refused(output=Path("store")) == ("-o store is a folder: name the file in it, or give --export-path store.")


def test_file_that_cannot_be_read_is_named(in_folder: InFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    in_folder(h__py=HANDLER)

    def denied(file: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(PackError, match=r"m\.mar cannot be made: Permission denied \(h\.py\)"):
        pack(options())


def test_progress_adds_up(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER, w__ckpt=os.urandom(3 << 20))
    for archive_format in FORMATS:
        seen: list[int] = []
        totals: list[int] = []

        def watch(label: str, total: int, seen: list[int] = seen, totals: list[int] = totals) -> Any:
            totals.append(total)
            return nullcontext(seen.append)

        pack(options(serialized_file="w.ckpt", archive_format=archive_format, force=True), watch=watch)
        assert [sum(seen)] == totals
