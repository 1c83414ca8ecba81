"""One server per model store, found by its lock; files of dead ones count for nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_frontend.instance import Instance, InstanceError, InstanceInfo, all_running, running_on
from tests.disks import fill, small_disk


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "msx-serve" / "servers"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def held(store: Path) -> Iterator[Instance]:
    instance = Instance(store)
    yield instance
    instance.close()


def info(store: Path, pid: int | None = None, changes: dict[str, str | None] | None = None) -> InstanceInfo:
    places: dict[str, str | None] = {
        "inference": "http://127.0.0.1:1",
        "management": "http://127.0.0.1:2",
        "metrics": "http://127.0.0.1:3",
        "grpc_inference": "127.0.0.1:4",
        "grpc_management": "127.0.0.1:5",
        "key_file": "/k/key_file.json",
        "log_file": None,
        **(changes or {}),
    }
    return InstanceInfo(pid=pid or os.getpid(), model_store=str(store), started_at=1.5, **places)  # type: ignore[arg-type]


def test_a_published_server_is_found(store: Path, held: Instance) -> None:
    assert running_on(store) is None
    held.publish(info(store))
    assert running_on(store) == info(store)
    assert all_running() == [info(store)]


def test_an_ended_server_is_not(store: Path, index: Path) -> None:
    instance = Instance(store)
    instance.publish(info(store))
    instance.close()
    assert running_on(store) is None
    assert all_running() == []
    assert not list(index.iterdir())
    assert not (store / ".msx" / "server.json").exists()


def test_what_a_killed_server_left_counts_for_nothing(store: Path, index: Path) -> None:
    instance = Instance(store)
    instance.publish(info(store))
    os.close(instance._lock)  # what the kernel does for a process that is killed
    assert (store / ".msx" / "server.json").exists()
    assert running_on(store) is None
    assert all_running() == []
    assert not list(index.iterdir())
    again = Instance(store)
    again.close()


def test_a_second_one_names_the_first(store: Path, held: Instance) -> None:
    held.publish(info(store, pid=4711))
    with pytest.raises(
        InstanceError, match=r"already running on the model store .*store \(pid 4711, inference at http"
    ):
        Instance(store)


def test_a_second_one_while_the_first_is_starting(store: Path, held: Instance) -> None:
    with pytest.raises(InstanceError, match=r"already running on the model store .*store, please use msx-serve --stop"):
        Instance(store)


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
    assert running_on(store) is None
    assert all_running() == []


def test_a_store_that_cannot_be_written(store: Path) -> None:
    (store / ".msx").write_text("")
    with pytest.raises(InstanceError, match=r"The model store .*store cannot be written: .*\.msx"):
        Instance(store)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "metrics http://127.0.0.1:3, gRPC 127.0.0.1:4, management 127.0.0.1:5, tokens /k/key_file.json"),
        (
            {"metrics": None, "key_file": None, "log_file": "/l"},
            "metrics off, gRPC 127.0.0.1:4, management 127.0.0.1:5, tokens off (--disable-token-auth), log /l",
        ),
    ],
)
def test_summary(store: Path, changes: dict[str, str | None], expected: str) -> None:
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
    instance = Instance(store)
    assert not any(path.exists() for path in left)
    instance.close()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        instance = Instance(disk)
        fill(disk)
        with pytest.raises(InstanceError, match=r"server\.json cannot be written: No space left .*it needs \d+ B, and"):
            instance.publish(info(disk))
        instance.close()
        assert {entry.name for entry in (disk / ".msx").iterdir()} == {"server.lock"}
