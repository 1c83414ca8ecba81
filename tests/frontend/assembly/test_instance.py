"""One server per model store, found by its lock; files of dead ones count for nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.assembly.info import InstanceInfo
from msx_frontend.assembly.instance import Instance, InstanceError, all_running, running_in
from msx_frontend.cli.subcommands.linking import NAMES
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import StateFolder, StateFolderError, state_folder
from tests.disks import fill, small_disk


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "msx-serve" / "servers"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def beside(store: Path) -> StateFolder:
    return StateFolder(store / ".msx", store)


@pytest.fixture
def held(store: Path) -> Iterator[Instance]:
    instance = Instance(beside(store))
    yield instance
    instance.close()


def info(store: Path, pid: int | None = None, changes: dict[str, Any] | None = None) -> InstanceInfo:
    places: dict[str, Any] = {
        "inference": "http://127.0.0.1:1",
        "management": "http://127.0.0.1:2",
        "metrics": "http://127.0.0.1:3",
        "grpc_inference": "127.0.0.1:4",
        "grpc_management": "127.0.0.1:5",
        "key_file": "/k/key_file.json",
        "log_file": None,
        "state_dir": str(store / ".msx"),
        **(changes or {}),
    }
    return InstanceInfo(**{"pid": pid or os.getpid(), "model_store": str(store), "started_at": 1.5, **places})


def test_a_published_server_is_found(store: Path, held: Instance) -> None:
    assert running_in([store / ".msx"]) == []
    held.publish(info(store))
    assert running_in([store / ".msx"]) == [info(store)]
    assert all_running() == [info(store)]


def test_one_below_a_supervisor_is_described_by_its_number(
    store: Path, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the server. The next frontend describes itself in the same place."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    first = Instance(beside(store))
    first.publish(info(store, 1))
    first.leave()
    assert not list(index.iterdir())
    second = Instance(beside(store))
    second.publish(info(store, 1))
    first.close()
    assert [one.pid for one in all_running()] == [1]
    assert (tmp_path / ".model_server.pid").read_text() == "1"
    second.close()
    assert not list(index.iterdir())


@pytest.mark.parametrize("name", [name for name, command in NAMES.items() if command == "msx-serve"] + ["msx-serve"])
def test_one_whose_next_frontend_has_not_come_up_runs(name: str, store: Path, index: Path) -> None:
    """`--stop` finds it in a crash loop, too, and no other server takes its folder. Its own frontend does."""
    command = [sys.executable, "-c", "input()", f"/usr/bin/{name}"]
    supervisor = subprocess.Popen(command, stdin=subprocess.PIPE)
    below = info(store, supervisor.pid, {"frontend": 1, "started_at": time.time() + 60})
    first = Instance(beside(store))
    first.publish(below)
    os.close(first._lock)
    assert running_in([store / ".msx"]) == all_running() == [below]
    with pytest.raises(InstanceError, match=rf"already running on the model store .*\(pid {supervisor.pid}"):
        Instance(beside(store))
    first = Instance(beside(store), below=supervisor.pid)
    os.close(first._lock)
    supervisor.kill()
    os.waitid(os.P_PID, supervisor.pid, os.WEXITED | os.WNOWAIT)
    assert running_in([store / ".msx"]) == []
    supervisor.communicate()
    Instance(beside(store)).close()


def test_process_1_of_another_container_is_none_of_ours(store: Path) -> None:
    """Each has one, and the folder may be on a volume."""
    first = Instance(beside(store))
    first.publish(info(store, 1, {"frontend": 7, "started_at": time.time()}))
    os.close(first._lock)
    assert running_in([store / ".msx"]) == []
    Instance(beside(store)).close()


def test_an_ended_server_is_not(store: Path, index: Path) -> None:
    instance = Instance(beside(store))
    instance.publish(info(store))
    instance.close()
    assert running_in([store / ".msx"]) == []
    assert all_running() == []
    assert not list(index.iterdir())
    assert not (store / ".msx" / "server.json").exists()


def test_what_a_killed_server_left_counts_for_nothing(store: Path, index: Path) -> None:
    instance = Instance(beside(store))
    instance.publish(info(store))
    os.close(instance._lock)  # what the kernel does for a process that is killed
    assert (store / ".msx" / "server.json").exists()
    assert running_in([store / ".msx"]) == []
    assert all_running() == []
    assert not list(index.iterdir())
    again = Instance(beside(store))
    again.close()


def test_a_second_one_names_the_first(store: Path, held: Instance) -> None:
    held.publish(info(store, pid=4711))
    with pytest.raises(
        InstanceError, match=r"already running on the model store .*store \(pid 4711, inference at http"
    ):
        Instance(beside(store))


def test_a_second_one_while_the_first_is_starting(store: Path, held: Instance) -> None:
    with pytest.raises(InstanceError, match=r"already running on the model store .*store, please use msx-serve --stop"):
        Instance(beside(store))


def test_an_entry_whose_store_another_server_has(store: Path, held: Instance, index: Path) -> None:
    """The pid in the index is a dead one's; the store's own file tells of the living."""
    held.publish(info(store, pid=4711))
    held.publish(info(store))
    assert all_running() == [info(store)]
    assert [path.name for path in index.iterdir()] == [f"{os.getpid()}.json"]


def test_damaged_files(store: Path, held: Instance, index: Path) -> None:
    held.publish(info(store))
    (store / ".msx" / "server.json").write_text("{")
    (index / "1.json").write_text("[]")
    assert running_in([store / ".msx"]) == []
    assert all_running() == []


def test_a_store_that_cannot_be_written(store: Path) -> None:
    (store / ".msx").write_text("")
    with pytest.raises(StateFolderError, match=r"The model store .*store cannot be written: .*\.msx.*--state-dir"):
        Instance(beside(store))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "metrics http://127.0.0.1:3, gRPC 127.0.0.1:4, management 127.0.0.1:5, tokens /k/key_file.json"),
        (
            {"metrics": None, "key_file": None, "log_file": "/l", "log_folder": "/logs"},
            "metrics off, gRPC 127.0.0.1:4, management 127.0.0.1:5, tokens off (--disable-token-auth), "
            "log /l, log files /logs",
        ),
        (
            {"log_file": "/l", "log_files": ["/a.log", "/b.log"]},
            "metrics http://127.0.0.1:3, gRPC 127.0.0.1:4, management 127.0.0.1:5, tokens /k/key_file.json, "
            "log /a.log, /b.log",
        ),
    ],
)
def test_summary(store: Path, changes: dict[str, Any], expected: str) -> None:
    start = "inference http://127.0.0.1:1, management http://127.0.0.1:2, "
    assert info(store, changes=changes).summary() == start + expected
    more = changes | {"configuration": "/c", "state": "/s", "models": "none"}
    assert info(store, changes=more).summary() == "config /c, state /s, models none, " + start + expected


def test_what_a_killed_server_was_just_writing_is_swept(store: Path, index: Path) -> None:
    index.mkdir(parents=True)
    (store / ".msx").mkdir()
    left = [store / ".msx" / "server.1.tmp", index / "99999999.99999999.tmp"]
    for path in left:
        path.write_text("{")
    instance = Instance(beside(store))
    assert not any(path.exists() for path in left)
    instance.close()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        instance = Instance(beside(disk))
        fill(disk)
        with pytest.raises(InstanceError, match=r"server\.json cannot be written: No space left .*it needs \d+ B, and"):
            instance.publish(info(disk))
        instance.close()
        assert {entry.name for entry in (disk / ".msx").iterdir()} == {"server.lock"}


def test_a_server_of_before_has_its_state_beside_its_models(store: Path) -> None:
    assert info(store, changes={"state_dir": ""}).state_folder == store / ".msx"


def test_several_share_a_model_store_each_with_a_state_folder_of_its_own(store: Path, tmp_path: Path) -> None:
    folders = [StateFolder(tmp_path / name, store, is_named=True) for name in ("one", "two")]
    instances = [Instance(folder) for folder in folders]
    for number, instance in enumerate(instances):
        instance.publish(info(store, changes={"state_dir": str(folders[number].path)}))
    assert len(running_in(folder.path for folder in folders)) == 2
    with pytest.raises(InstanceError, match=r"running with the state folder .*/one \(pid .*--state-dir of its own"):
        Instance(folders[0])
    for instance in instances:
        instance.close()
    assert not (store / ".msx").exists()


def test_with_and_without_a_state_one_server_at_a_time_has_a_model_store(
    store: Path, held: Instance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    held.publish(info(store))
    with pytest.raises(
        InstanceError, match=r"already running on the model store .* \(pid .*or give another one a --sta"
    ):
        Instance(state_folder(ServerConfig(model_store=store, snapshots=False)))
    Instance(state_folder(ServerConfig(model_store=store, state_dir=tmp_path / "mine"))).close()


@pytest.mark.parametrize("obstacle", ["a file", "no home"])
def test_the_list_of_servers_is_optional(
    store: Path, held: Instance, index: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    if obstacle == "a file":
        index.parent.parent.write_text("")
    else:
        monkeypatch.setattr("platformdirs.user_state_dir", lambda name: f"~/.local/state/{name}")
    instance = Instance(StateFolder(store / "other", store, is_named=True))
    instance.publish(info(store, changes={"state_dir": str(store / "other")}))
    assert len(running_in([store / "other"])) == 1
    assert all_running() == []
    instance.close()
    assert not Path("~").exists()
