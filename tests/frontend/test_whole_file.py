"""Small files are whole or not there, and nothing lies beside them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from msx_frontend.keys.tokens import TokenFileError, Tokens
from msx_frontend.models.state.store import StateStore, StateStoreError
from msx_frontend.whole_file import NotWritten, sweep, write_whole
from tests.disks import fill, small_disk
from tests.frontend.models.state.test_store import record


def test_it_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    write_whole(path, b"old", 0o600)
    write_whole(path, b"new", 0o600)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_keeps_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        path = disk / "b.json"
        write_whole(path, b"old")
        fill(disk)
        with pytest.raises(NotWritten) as caught:
            write_whole(path, bytes(6 << 10))
        assert str(caught.value) == (
            f"{path} cannot be written: No space left on device (it needs 6.0 KiB, and its disk has 0 B left)"
        )
        assert path.read_bytes() == b"old"
        assert {entry.name for entry in disk.iterdir()} == {"b.json", "filler"}


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    dead, living = done.stdout.decode().strip(), os.getppid()
    for name in (f"a.{dead}.tmp", f"a.{living}.tmp", f"a.{os.getpid()}.tmp", "a.json", "a.tmp"):
        (tmp_path / name).touch()
    sweep(tmp_path, "*")
    assert {entry.name for entry in tmp_path.iterdir()} == {f"a.{living}.tmp", "a.json", "a.tmp"}


def test_the_state_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 512 << 10) as disk:
        store = StateStore(disk / "state.db")
        fill(disk)
        with pytest.raises(StateStoreError, match=r"state\.db: .* is full \(it needs 64\.0 KiB, and its disk has 0 B"):
            store.save_version(record("2", options={"x": "y" * 100_000}))
        store.close()


def test_the_key_file_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        fill(disk)
        with pytest.raises(
            TokenFileError, match=r"No space left on device \(it needs \d+ B, and its disk has 0 B left"
        ):
            Tokens(disk / "key_file.json", 60)
        assert {entry.name for entry in disk.iterdir()} == {"filler"}
