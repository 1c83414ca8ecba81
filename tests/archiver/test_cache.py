from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from msx_archiver import cache as cache_module
from msx_archiver import identity
from msx_archiver.archive import Archive
from msx_archiver.cache import ArchiveCache
from msx_archiver.errors import ArchiveError, HostileArchiveError
from msx_archiver.extract import extract
from msx_archiver.identity import content_digest
from msx_archiver.reader import open_as
from msx_archiver.schema import ArchiveSchema, M
from msx_core.manifest import Manifest
from tests.archiver.conftest import FILES, small_files_only, tree, write_folder, write_tgz, write_zip
from tests.archiver.test_extract import sealed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def extractions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    seen: list[Path] = []

    def record(archive: Archive[Manifest], folder: Path, *rest: object) -> None:
        seen.append(archive.path)
        extract(archive, folder)

    monkeypatch.setattr(cache_module, "extract", record)
    return seen


def models(root: Path) -> set[str]:
    """Everything in the cache that is not bookkeeping."""
    return {path.name for path in root.iterdir() if path.is_dir()}


def folder_entry(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.DIRTYPE
    return entry


def test_unpack(mar: Path, root: Path) -> None:
    model = ArchiveCache(root).unpack(mar)
    assert tree(model.path) == FILES
    assert model.path == root / model.digest
    assert model.manifest.model.model_name == "m"
    assert models(root) == {model.digest}


def test_same_bytes_are_unpacked_once(mar: Path, root: Path, extractions: list[Path]) -> None:
    first = ArchiveCache(root).unpack(mar)
    copy = mar.with_name("copy.mar")
    copy.write_bytes(mar.read_bytes())
    second = ArchiveCache(root).unpack(copy)
    assert second.path == first.path
    assert extractions == [mar]


def test_hit_does_not_open_the_archive(mar: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ArchiveCache(root).unpack(mar)
    opened: list[Path] = []

    def record(schema: ArchiveSchema[M], path: Path, *rest: object) -> Archive[M]:
        opened.append(path)
        return open_as(schema, path)

    monkeypatch.setattr(cache_module, "open_as", record)
    assert ArchiveCache(root).unpack(mar) == first
    assert opened == [first.path]


def test_other_bytes_get_another_folder(mar: Path, root: Path) -> None:
    first = ArchiveCache(root).unpack(mar)
    write_zip(mar, [*FILES.items(), ("new", b"x")])
    second = ArchiveCache(root).unpack(mar)
    assert second.path != first.path
    assert (second.path / "new").exists()


def test_folder_is_used_in_place(tmp_path: Path, root: Path) -> None:
    folder = write_folder(tmp_path / "outer" / "model", FILES)
    cache = ArchiveCache(root)
    model = cache.unpack(folder.parent)
    assert model.path == folder
    assert cache.unpack(folder.parent).digest == model.digest
    assert models(root) == set()
    (folder / "h.py").write_bytes(b"changed")
    assert cache.unpack(folder).digest != model.digest


def test_warnings_of_the_manifest_come_along(tmp_path: Path, root: Path) -> None:
    manifest = b'{"model": {"modelName": "m", "handler": "h", "typo": 1}}'
    path = write_zip(tmp_path / "m.mar", [("MAR-INF/MANIFEST.json", manifest), ("x", b"")])
    for _ in range(2):
        assert ArchiveCache(root).unpack(path).warnings == ["Unknown key 'model.typo' in the manifest is ignored."]


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_no_archive_leaves_nothing(tmp_path: Path, root: Path, content: bytes) -> None:
    (tmp_path / "m.mar").write_bytes(content)
    with pytest.raises(ArchiveError, match=r"m\.mar is not a model archive"):
        ArchiveCache(root).unpack(tmp_path / "m.mar")
    with pytest.raises(ArchiveError, match=r"none\.mar cannot be read"):
        ArchiveCache(root).unpack(tmp_path / "none.mar")
    assert list(root.iterdir()) == []


def test_hostile_archive_leaves_nothing(tmp_path: Path, root: Path) -> None:
    path = write_zip(tmp_path / "m.mar", [*FILES.items(), ("../../evil", b"")])
    with pytest.raises(HostileArchiveError, match="evil"):
        ArchiveCache(root).unpack(path)
    assert list(root.iterdir()) == []


def test_full_disk_leaves_nothing(tmp_path: Path, root: Path) -> None:
    path = write_zip(tmp_path / "m.mar", [("zeros.bin", bytes(1 << 20)), *FILES.items()])
    words = r"m\.mar cannot be unpacked into .*cache: File too large.*1\.0 MiB"
    with small_files_only(), pytest.raises(ArchiveError, match=words):
        ArchiveCache(root).unpack(path)
    assert models(root) == set()


def test_damaged_file_leaves_nothing(tmp_path: Path, root: Path) -> None:
    path = write_zip(tmp_path / "m.mar", list(sealed({"a": b"1"}, a=b"2").items()))
    with pytest.raises(ArchiveError, match="'a' does not have the digest"):
        ArchiveCache(root).unpack(path)
    assert models(root) == set()


def test_unwritable_root_is_named(mar: Path, root: Path) -> None:
    cache = ArchiveCache(root)
    shutil.rmtree(root)
    root.write_bytes(b"")
    with pytest.raises(ArchiveError, match="cannot be unpacked into"):
        cache.unpack(mar)


def test_file_lost_by_a_power_failure_is_unpacked_again(tmp_path: Path, root: Path) -> None:
    path = write_zip(tmp_path / "m.mar", list(sealed({"a": b"12", "b": b""}).items()))
    model = ArchiveCache(root).unpack(path)
    (model.path / "a").write_bytes(b"")
    assert (ArchiveCache(root).unpack(path).path / "a").read_bytes() == b"12"
    shutil.rmtree(model.path / "MAR-INF")
    assert (ArchiveCache(root).unpack(path).path / "MAR-INF").exists()
    assert models(root) == {model.digest}


def test_files_that_handlers_add_do_not_matter(mar: Path, root: Path, extractions: list[Path]) -> None:
    folder = ArchiveCache(root).unpack(mar).path
    write_folder(folder / "__pycache__", {"h.pyc": b""})
    ArchiveCache(root).unpack(mar)
    assert extractions == [mar]


def test_archive_with_digests_is_read_once(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "digest_of_bytes", None)
    files = sealed({"a": b"12", "b": b""})
    first = ArchiveCache(root).unpack(write_zip(tmp_path / "m.mar", list(files.items())))
    again = ArchiveCache(root).unpack(write_zip(tmp_path / "again.mar", list(files.items()), zipfile.ZIP_STORED))
    other = ArchiveCache(root).unpack(write_tgz(tmp_path / "m.tgz", [*files.items(), (folder_entry("sub"), b"")]))
    assert first.path == again.path
    assert other.path != first.path, "it has a folder more"


def test_stored_files_are_the_caches_own(tmp_path: Path, root: Path) -> None:
    """A handler that writes to its model's folder does not damage the model store."""
    path = write_zip(tmp_path / "m.mar", list(sealed({"a": bytes(8192)}).items()), zipfile.ZIP_STORED)
    before = path.read_bytes()
    unpacked = ArchiveCache(root).unpack(path).path / "a"
    unpacked.write_bytes(b"x" * 8192)
    assert path.read_bytes() == before
    assert unpacked.stat().st_nlink == 1


def test_archive_replaced_before_it_was_read_is_not_remembered(
    mar: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replaced(archive: Archive[Manifest]) -> str:
        write_zip(mar.with_name("new"), [*FILES.items(), ("new", b"")]).rename(mar)
        return content_digest(archive)

    monkeypatch.setattr(cache_module, "content_digest", replaced)
    with pytest.raises(ArchiveError, match="changed while it was being unpacked"):
        ArchiveCache(root).unpack(mar)
    monkeypatch.undo()
    assert (ArchiveCache(root).unpack(mar).path / "new").exists()


def test_archive_replaced_meanwhile(mar: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replaced(archive: Archive[Manifest], folder: Path, *rest: object) -> None:
        extract(archive, folder)
        write_zip(mar.with_name("new"), [*FILES.items(), ("new", b"")]).rename(mar)

    monkeypatch.setattr(cache_module, "extract", replaced)
    with pytest.raises(ArchiveError, match="changed while it was being unpacked"):
        ArchiveCache(root).unpack(mar)
    assert models(root) == set()


def test_threads_unpack_once(mar: Path, root: Path, extractions: list[Path]) -> None:
    together = threading.Barrier(4)

    def unpack() -> Path:
        cache = ArchiveCache(root)
        together.wait()
        return cache.unpack(mar).path

    with ThreadPoolExecutor(4) as pool:
        found = {future.result() for future in [pool.submit(unpack) for _ in range(4)]}
    assert len(found) == 1
    assert tree(found.pop()) == FILES
    assert extractions == [mar]


SCRIPT = """
import sys
from pathlib import Path
from msx_archiver.cache import ArchiveCache
cache = ArchiveCache(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(cache.unpack(Path(sys.argv[2])).path)
"""


def test_processes_unpack_the_same_archive(tmp_path: Path, root: Path) -> None:
    files = sealed({f"{i}.bin": os.urandom(200_000) for i in range(20)})
    path = write_zip(tmp_path / "m.mar", list(files.items()))
    command = [sys.executable, "-c", SCRIPT, str(root), str(path)]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for worker in workers:
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
    answers = {worker.communicate("go\n", timeout=60)[0].strip() for worker in workers}
    assert all(worker.returncode == 0 for worker in workers)
    assert len(answers) == 1
    assert tree(Path(answers.pop())) == files
    assert len(models(root)) == 1


def test_killed_process_leaves_nothing_that_is_used(tmp_path: Path, root: Path) -> None:
    """SIGKILL in the middle of unpacking; the next start removes the half and unpacks anew."""
    path = write_zip(tmp_path / "m.mar", list(FILES.items()))
    script = (
        "import os, signal, msx_archiver.copying as c, msx_archiver.extract as e\n"
        "def die(*args): os.kill(os.getpid(), signal.SIGKILL)\n"
        "e.pour = die\n" + SCRIPT.replace("sys.stdin.readline()", "")
    )
    killed = subprocess.run([sys.executable, "-c", script, root, path], capture_output=True, timeout=60)
    assert killed.returncode == -9
    assert any(name.startswith(".tmp-") for name in models(root))
    cache = ArchiveCache(root)
    cache.clean(in_use=[])
    assert models(root) == set()
    assert tree(cache.unpack(path).path) == FILES


def test_clean_keeps_what_is_in_use(mar: Path, root: Path) -> None:
    cache = ArchiveCache(root)
    used = cache.unpack(mar)
    unused = cache.unpack(write_zip(mar.with_name("b.mar"), [*FILES.items(), ("b", b"")]))
    for _ in range(2):
        cache.clean([used.digest])
        assert models(root) == {used.digest}
    assert not unused.path.exists()
    cache.clean([])
    assert models(root) == set()
    assert not list(root.glob(".lock-*"))


def test_clean_leaves_alone_what_another_is_unpacking(mar: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cleaned_meanwhile(archive: Archive[Manifest], folder: Path, *rest: object) -> None:
        ArchiveCache(root).clean(in_use=[])
        extract(archive, folder)

    monkeypatch.setattr(cache_module, "extract", cleaned_meanwhile)
    assert tree(ArchiveCache(root).unpack(mar).path) == FILES


def test_clean_touches_nothing_else(mar: Path, root: Path) -> None:
    cache = ArchiveCache(root)
    write_folder(root, {"notes.txt": b"mine", "folder/x": b""})
    cache.unpack(mar)
    cache.clean([])
    assert tree(root).keys() >= {"notes.txt", "folder/x", "digests.json"}
