"""One folder of unpacked archives for several servers, each of them a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msx_archiver.cache import ArchiveCache
from msx_archiver.errors import ArchiveError
from msx_archiver.uses import Uses
from tests.archiver.conftest import FILES, tree
from tests.disks import fill, small_disk

SERVER = """
import sys
from pathlib import Path
from msx_archiver import cache as module
from msx_archiver.cache import ArchiveCache
from msx_archiver.uses import Uses
root, archive, own = map(Path, sys.argv[1:4])
extract = module.extract
def told(archive, folder, *rest):
    print("extracts", flush=True)
    if len(sys.argv) > 4:
        sys.stdin.readline()
    extract(archive, folder, *rest)
module.extract = told
cache = ArchiveCache(root, digests=own, uses=Uses(root / "users.lock"))
sys.stdin.readline()
unpacked = cache.unpack(archive)
print(unpacked.digest, flush=True)
for line in sys.stdin:
    cache.clean(()) if line == "clean\\n" else cache.remove(unpacked.digest)
    print("done", flush=True)
"""


class Server:
    """A process that unpacks the archive when it is told to, and cleans up or removes it later."""

    def __init__(self, root: Path, archive: Path, *, pauses: bool = False) -> None:
        own = root.with_name(f"digests-{len(list(root.parent.iterdir()))}.json")
        own.touch()
        command = [sys.executable, "-c", SERVER, str(root), str(archive), str(own), *(["pauses"] if pauses else [])]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]

    def tell(self, line: str = "") -> None:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def says(self) -> str:
        return str(self.process.stdout.readline().strip())

    def does(self, line: str) -> None:
        self.tell(line)
        assert self.says() == "done"

    def end(self) -> list[str]:
        """Wait for its end. -> Its output that nobody has read."""
        said = self.process.communicate(timeout=60)[0]
        assert self.process.returncode == 0
        return str(said).split()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shared" / "models"
    root.mkdir(parents=True)
    return root


@contextmanager
def server(root: Path, archive: Path, *, pauses: bool = False) -> Iterator[Server]:
    started = Server(root, archive, pauses=pauses)
    try:
        yield started
    finally:
        if started.process.returncode is None:
            started.kill()


def contents(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.is_dir())


def test_several_at_once_unpack_it_once(mar: Path, root: Path) -> None:
    started = [Server(root, mar) for _ in range(4)]
    for one in started:
        one.tell()
    said = [line for one in started for line in one.end()]
    assert said.count("extracts") == 1
    (digest,) = set(said) - {"extracts"}
    assert contents(root) == [digest]
    assert tree(root / digest) == FILES


def test_what_another_server_uses_stays_until_that_one_has_ended(mar: Path, root: Path) -> None:
    """It is not asked whether it is still there: the lock of a process ends with it, also by SIGKILL."""
    with server(root, mar) as one, server(root, mar) as two:
        for each in (one, two):
            each.tell()
            while (digest := each.says()) == "extracts":
                pass
        one.does("remove")
        one.does("clean")
        assert tree(root / digest) == FILES
        two.kill()
        one.does("clean")
        assert contents(root) == []


def test_one_that_dies_half_way_leaves_the_archive_to_others(mar: Path, root: Path) -> None:
    with server(root, mar, pauses=True) as one, server(root, mar) as two:
        one.tell()
        assert one.says() == "extracts"
        two.tell()
        assert contents(root) != []
        one.kill()
        assert two.says() == "extracts"
        digest = two.says()
        assert tree(root / digest) == FILES
        two.does("clean")
        assert not list(root.glob(".tmp-*"))


def test_a_server_that_cleans_leaves_what_another_is_unpacking(mar: Path, root: Path, tmp_path: Path) -> None:
    with server(root, mar, pauses=True) as one:
        one.tell()
        assert one.says() == "extracts"
        shared(root, tmp_path).clean(())
        assert list(root.glob(".tmp-*"))
        one.tell()
        assert tree(root / one.says()) == FILES


def shared(root: Path, folder: Path) -> ArchiveCache:
    return ArchiveCache(root, digests=folder / "own.json", uses=Uses(root / "users.lock"))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """For root, too."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a folder once more")
    for step in (["--bind", str(folder)], ["-o", "remount,bind,ro"]):
        if subprocess.run(["mount", *step, str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("mounts are not allowed")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("locks", [True, False], ids=["as it was left", "copied without the locks"])
def test_a_read_only_folder_that_has_the_content(mar: Path, root: Path, tmp_path: Path, *, locks: bool) -> None:
    digest = shared(root, tmp_path).unpack(mar).digest
    (tmp_path / "own.json").unlink()
    if not locks:
        for file in [*root.glob(".lock-*"), root / "users.lock"]:
            file.unlink(missing_ok=True)
    with read_only(root):
        cache = shared(root, tmp_path)
        assert cache.unpack(mar).path == root / digest
        assert tree(root / digest) == FILES
        cache.clean(())
        assert (root / digest).is_dir()


def test_a_read_only_folder_without_the_content_is_named(mar: Path, root: Path, tmp_path: Path) -> None:
    with read_only(root), pytest.raises(ArchiveError, match="Read-only file system"):
        shared(root, tmp_path).unpack(mar)


def test_a_full_disk_leaves_nothing_that_another_would_take_for_whole(mar: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 18) as disk:
        root = disk / "models"
        cache = shared(root, tmp_path)
        (root / "users.lock").touch()
        fill(disk, leave=4096)
        with pytest.raises(ArchiveError, match="cannot be unpacked into"):
            cache.unpack(mar)
        assert contents(root) == []
        (disk / "filler").unlink()
        assert tree(cache.unpack(mar).path) == FILES


def test_locks_survive_that_their_file_is_removed(mar: Path, root: Path, tmp_path: Path) -> None:
    one = shared(root, tmp_path)
    digest = one.unpack(mar).digest
    (root / "users.lock").unlink()
    one.unpack(mar)
    shared(root, tmp_path).clean(())
    assert (root / digest).is_dir()


def test_changed_files_are_unpacked_again_for_all(mar: Path, root: Path, tmp_path: Path) -> None:
    one, two = shared(root, tmp_path / "a"), shared(root, tmp_path / "b")
    unpacked = one.unpack(mar)
    two.unpack(mar)
    shutil.rmtree(unpacked.path)
    assert tree(one.unpack(mar).path) == FILES
    two.remove(unpacked.digest)
    assert tree(unpacked.path) == FILES
    one.remove(unpacked.digest)
    assert contents(root) == []
