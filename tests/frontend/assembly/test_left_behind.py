"""Leftovers of killed servers are removed, and nothing of a living one is."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from msx_frontend.assembly.instance import Instance
from msx_frontend.assembly.left_behind import LeftBehind, remove_folder, remove_left, remove_own
from msx_frontend.assembly.pid_file import NAME as PID_FILE
from msx_frontend.keys.tokens import Tokens
from tests.frontend.assembly.test_instance import beside, info

GONE = 1 << 22
"""No process has this pid: they are below 4,194,304."""


@pytest.fixture(autouse=True)
def _own_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "index"))
    monkeypatch.setenv("TEMP", str(tmp_path))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def killed(store: Path, **changes: Any) -> Path:
    """The state folder as SIGKILL leaves it."""
    folder = store / ".msx"
    for name in ("run/9000-0/x", "downloads/a.part", "models/.tmp-aa-1/f", "environments/k-1/site/f"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(b"x" * 5000)
    for name in ("models/aa/f", "environments/k-2/complete", "hub/m/part"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    for name in ("server.lock", "state.db"):
        (folder / name).touch()
    (folder / "server.json").write_bytes(msgspec.json.encode(info(store, GONE, changes)))
    return folder


def left_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


KEPT = {"models/aa/f", "environments/k-2/complete", "hub/m/part", "server.lock", "state.db"}


def removed(folder: Path) -> LeftBehind:
    found = remove_left(folder)
    assert found is not None
    return found


def test_what_the_next_start_would_remove(store: Path) -> None:
    folder = killed(store)
    found = removed(folder)
    assert set(found.names) == {"run", "downloads", "server.json", "models/.tmp-aa-1", "environments/k-1"}
    assert found.size >= 4 * 5000
    assert (found.stayed, found.processes) == ("", ())
    assert left_in(folder) == KEPT
    assert remove_left(folder) is None, "once"


def test_a_server_that_has_the_folder_keeps_everything(store: Path) -> None:
    folder = killed(store)
    instance = Instance(beside(store))
    (folder / "run").mkdir(exist_ok=True)
    before = left_in(folder)
    assert remove_left(folder) is None
    remove_own(folder)
    assert left_in(folder) == before
    instance.close()


def test_a_server_that_nobody_follows_removes_its_own(store: Path) -> None:
    """It runs still, and has let go of the folder."""
    folder = killed(store)
    (folder / "server.json").write_bytes(msgspec.json.encode(info(store, os.getpid())))
    remove_own(folder)
    assert left_in(folder) == KEPT


def test_a_file_system_without_locks(store: Path) -> None:
    """The lock is free, and the process that is described is there."""
    folder = killed(store)
    living = msgspec.structs.replace(info(store, os.getpid()), started_at=time.time())
    (folder / "server.json").write_bytes(msgspec.json.encode(living))
    assert remove_left(folder) is None
    later = msgspec.structs.replace(living, started_at=psutil.Process().create_time() - 100)
    (folder / "server.json").write_bytes(msgspec.json.encode(later))
    assert "run" in removed(folder).names, "another process has its number"


def test_a_folder_that_never_was_a_servers(store: Path) -> None:
    (store / ".msx" / "run").mkdir(parents=True)
    assert remove_left(store / ".msx") is None
    assert remove_left(store / "absent") is None
    assert (store / ".msx" / "run").is_dir()


def test_sockets_of_its_listeners_that_nobody_has(store: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as living:
        dead.bind(str(tmp_path / "dead"))
        living.bind(str(tmp_path / "living"))
        living.listen()
        (tmp_path / "file").touch()
        names = ("dead", "living", "file")
        addresses = zip(("inference", "management", "metrics"), names, strict=True)
        folder = killed(store, **{key: f"unix:{tmp_path}/{name}" for key, name in addresses})
        assert str(tmp_path / "dead") in removed(folder).names
        assert [(tmp_path / name).exists() for name in names] == [False, True, True]


@pytest.mark.parametrize(("keeps", "running"), [(False, False), (True, False), (False, True)])
def test_keys_that_open_nothing(store: Path, tmp_path: Path, keeps: bool, running: bool) -> None:
    path = tmp_path / "key_file.json"
    tokens = Tokens(path, 60, keep=True)
    if not running:
        tokens.close()
    removed(killed(store, key_file=str(path), keeps_keys=keeps))
    assert path.exists() == (keeps or running)
    tokens.close()


@pytest.mark.parametrize("lives", [False, True])
def test_torchserves_pid_file(store: Path, tmp_path: Path, lives: bool) -> None:
    (tmp_path / PID_FILE).write_text(str(os.getpid() if lives else GONE))
    removed(killed(store))
    assert (tmp_path / PID_FILE).exists() == lives


def test_a_process_that_outlives_it_is_named(store: Path) -> None:
    folder = killed(store)
    with subprocess.Popen(["sleep", "600"], cwd=folder / "run" / "9000-0") as process:
        assert removed(folder).processes == (f"{process.pid} (sleep)",)
        process.kill()


def test_a_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "msx-serve-path-abcdefgh" / "state").mkdir(parents=True)
    found = remove_folder(tmp_path / "msx-serve-path-abcdefgh")
    assert (found.names, found.stayed) == ((str(found.folder),), "")
    assert not found.folder.exists()
