"""Folders for what usually lies in the current folder, the home and the temporary files, where those take none."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.config import surroundings
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.config.surroundings import in_current_folder, settle_home, settle_logs


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "state", tmp_path / "store")


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch, state: StateFolder) -> None:
    """Permissions do not stop root: /proc takes no files from anybody."""
    monkeypatch.chdir("/proc/self")


def test_files_of_torchserve_lie_in_the_current_folder(
    state: StateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env: dict[str, str] = {}
    settle_logs(env, state)
    assert env == {}
    assert in_current_folder("key_file.json", state) == tmp_path / "key_file.json"
    (tmp_path / "key_file.json").write_text("")
    assert in_current_folder("key_file.json", state) == tmp_path / "key_file.json"


@pytest.mark.usefixtures("read_only")
def test_or_in_the_state_folder(state: StateFolder) -> None:
    env = {"METRICS_LOCATION": "/m"}
    settle_logs(env, state)
    assert env == {"METRICS_LOCATION": "/m", "LOG_LOCATION": str(state.logs)}
    assert in_current_folder("key_file.json", state) == state.path / "key_file.json"


def test_a_folder_of_logs_that_is_mounted_counts(
    state: StateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around it a container's file system is read-only."""
    (tmp_path / "logs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(surroundings, "can_be_made", lambda path: False)
    env: dict[str, str] = {}
    settle_logs(env, state)
    assert env == {}
    (tmp_path / "logs").rmdir()
    settle_logs(env, state)
    assert env["LOG_LOCATION"] == str(state.logs)


def test_a_home_that_is_there_is_kept(state: StateFolder, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    settle_home(env, state)
    assert env == {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize("home", ["/", "/nonexistent", ""])
def test_else_it_is_in_the_state_folder(state: StateFolder, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home or "~")
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    env = {"HOME": home}
    settle_home(env, state)
    assert env["HOME"] == str(state.path / "home")
    assert (state.path / "home").is_dir()


def test_a_cache_where_that_of_the_home_cannot_be_written(state: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/proc/self")
    env = {"HOME": "/proc/self"}
    settle_home(env, state)
    assert env == {"HOME": "/proc/self", "XDG_CACHE_HOME": str(state.path / "cache")}
    env = {"HOME": "/proc/self", "XDG_CACHE_HOME": "/c"}
    settle_home(env, state)
    assert env["XDG_CACHE_HOME"] == "/c"


def test_temporary_files(state: StateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "takes_files", lambda folder: folder == tmp_path)
    env = {"HOME": str(tmp_path), "TMPDIR": "/gone", "TEMP": str(tmp_path)}
    settle_home(env, state)
    assert env["TMPDIR"] == "/gone"
    del env["TEMP"]
    settle_home(env, state)
    assert env["TMPDIR"] == str(state.run / "tmp")
    assert (state.run / "tmp").is_dir()
