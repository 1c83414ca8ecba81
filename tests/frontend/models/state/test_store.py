import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_frontend.models.state import file
from msx_frontend.models.state.store import UNANSWERED, StateStore, StateStoreError, StoredVersion, StoredWorkflow


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".msx" / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[StateStore]:
    store = StateStore(path)
    yield store
    store.close()


def record(version: str = "1.0", name: str = "m", **changes: Any) -> StoredVersion:
    fields: dict[str, Any] = {
        "name": name, "version": version, "url": "m.mar", "digest": "d", "options": {"batch_size": 4, "handler": None},
        "min_workers": 1, "max_workers": 2, "is_default": False, "created_at": 1.5,
    }  # fmt: skip
    return StoredVersion(**fields | changes)


def reopened(store: StateStore) -> list[StoredVersion]:
    store.close()
    again = StateStore(store.path)
    found = again.load_all()
    again.close()
    return found


def test_what_was_saved_is_there_again_in_order(store: StateStore) -> None:
    records = [record("2", is_default=True), record("1"), record(name="a", options={"ü": [1, {"x": 0.5}]})]
    for one in records:
        store.save_version(one)
    assert reopened(store) == records


def test_changes(store: StateStore) -> None:
    for version in ("1", "2", "3"):
        store.save_version(record(version, is_default=version == "1"))
    store.save_version(record("1", is_default=True, min_workers=0, max_workers=5))
    store.set_default("m", "2", None)
    store.remove_version("m", "3", None)
    store.remove_version("m", "unknown", None)
    assert reopened(store) == [record("1", min_workers=0, max_workers=5), record("2", is_default=True)]


def test_what_was_never_answered_is_forgotten(store: StateStore) -> None:
    store.save_version(record("1"))
    store.save_version(record("2", created_at=UNANSWERED))
    flow = StoredWorkflow(name="w", url="w.war", workers={}, created_at=UNANSWERED)
    store.save_workflow(flow)
    store.save_workflow(msgspec.structs.replace(flow, name="v", created_at=1.0))
    assert store.forget_unanswered() == ["model m 2", "workflow w"]
    assert store.forget_unanswered() == []
    assert store.load_all() == [record("1")]
    assert [one.name for one in store.load_workflows()] == ["v"]


def test_a_version_saved_again_is_replaced(store: StateStore) -> None:
    store.save_version(record("1", is_default=True))
    store.save_version(record("2", digest="x"))
    store.save_version(record("1", digest="new"))
    assert store.load_all() == [record("1", digest="new"), record("2", digest="x")]


def test_a_model_has_one_default(store: StateStore) -> None:
    store.save_version(record("1", is_default=True))
    store.save_version(record("2", is_default=True))
    store.save_version(record("1", name="other", is_default=True))
    assert [r.is_default for r in store.load_all()] == [False, True, True]


def test_a_failed_change_changes_nothing(store: StateStore) -> None:
    store.save_version(record("1", is_default=True))
    with pytest.raises(StateStoreError, match=r"state\.db: has no version 2 of model m"):
        store.set_default("m", "2", None)
    assert store.load_all() == [record("1", is_default=True)]


def test_the_file_is_private(store: StateStore) -> None:
    store.save_version(record())
    files = list(store.path.parent.iterdir())
    assert store.path in files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_another_program_that_does_not_let_go(store: StateStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "PATIENCE", 0.1)
    impatient = StateStore(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateStoreError) as info:
            impatient.save_version(record())
        assert str(info.value) == (
            f"{path} has been held by another program for 0.1 s, a SQLite shell in a transaction or a server of an "
            "older MSX: end it, and try again"
        )
        shell.execute("ROLLBACK")
        impatient.save_version(record())
    impatient.close()
    assert store.load_all() == [record()]


@pytest.mark.parametrize("damage", ["header", "page", "text"])
def test_a_damaged_file_is_named_with_the_remedy(store: StateStore, path: Path, damage: str) -> None:
    for number in range(50):
        store.save_version(record(str(number)))
    store.close()
    data = bytearray(path.read_bytes())
    if damage == "text":
        data = bytearray(b"not a database, but long enough to have a header of one hundred bytes" * 2)
    else:
        start = 0 if damage == "header" else 4096
        data[start : start + 64] = b"x" * 64
    path.write_bytes(data)
    with pytest.raises(StateStoreError) as info:
        StateStore(path)
    assert str(info.value).startswith(f"{path} is damaged (")
    assert "put a backup in its place, or remove it together with state.db-journal and" in str(info.value)


def test_a_row_that_cannot_be_read_is_damage(store: StateStore, path: Path) -> None:
    store.save_version(record())
    store.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE versions SET options = '{'")
    db.close()
    again = StateStore(path)
    with pytest.raises(StateStoreError, match=r"is damaged \(Input data was truncated\)"):
        again.load_all()
    again.close()


def test_a_full_disk_is_an_error_and_the_old_state_stays(store: StateStore) -> None:
    store.save_version(record("1"))
    store._db.execute("PRAGMA max_page_count = 5")
    with pytest.raises(StateStoreError, match=r"cannot be written: database or disk is full"):
        store.save_version(record("2", options={"x": "y" * 100_000}))
    assert store.load_all() == [record("1")]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / ".msx").write_text("a file")
    with pytest.raises(StateStoreError, match=r"state\.db: the server's state cannot be opened: File exists"):
        StateStore(tmp_path / ".msx" / "state.db")


WRITER = """
import itertools, sys
import msgspec
from pathlib import Path
from msx_frontend.models.state.store import StateStore, StoredVersion
store = StateStore(Path(sys.argv[1]))
for number in itertools.count(len(store.load_all())):
    record = StoredVersion(name="m", version=str(number), url="u", digest="d", options={"x": "y" * 2000},
        min_workers=0, max_workers=0, is_default=True, created_at=0.0)
    store.save_version(record)
    store.save_version(msgspec.structs.replace(record, min_workers=1))
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_whole_changes_only(path: Path) -> None:
    for lines in (1, 3, 8, 20):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(lines)]
            writer.send_signal(signal.SIGKILL)
        store = StateStore(path)
        found = store.load_all()
        store.close()
        assert [r.version for r in found] == [str(n) for n in range(len(found))]
        assert [r.is_default for r in found] == [False] * (len(found) - 1) + [True]
        assert [found[number].min_workers for number in acknowledged] == [1] * lines


def test_use_after_close_does_no_damage(store: StateStore) -> None:
    store.close()
    store.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        store.load_all()


def workflow(name: str = "w") -> StoredWorkflow:
    return StoredWorkflow(name=name, url=f"{name}.war", workers={f"{name}__m-1.x": (1, 2)}, created_at=1.5)


def test_workflows(store: StateStore) -> None:
    store.save_workflow(workflow("b"))
    store.save_workflow(workflow("a"))
    assert store.load_workflows() == [workflow("b"), workflow("a")]
    store.remove_workflow("b")
    store.remove_workflow("b")
    assert store.load_workflows() == [workflow("a")]


def test_the_workers_of_a_node(store: StateStore) -> None:
    store.save_workflow(workflow())
    store.set_node_workers("w", "w__m-1.x", 3, 4)
    store.set_node_workers("unknown", "w__m-1.x", 5, 6)
    assert store.load_workflows()[0].workers == {"w__m-1.x": (3, 4)}


def test_a_damaged_workflow(store: StateStore) -> None:
    store.save_workflow(workflow())
    store._db.execute("UPDATE workflows SET workers = '[]'")
    with pytest.raises(StateStoreError, match="is damaged"):
        store.load_workflows()


def test_changes_of_a_start_are_one_transaction(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = StateStore(path)
    store.save_version(record())
    store.close()
    store = StateStore(path)
    store.begin()
    store.save_version(record(version="2.0"))
    with pytest.raises(StateStoreError, match=r"has no version 9\.0"):
        store.set_default("m", "9.0", None)
    assert [one.version for one in store.load_all()] == ["1.0", "2.0"], "only the change that failed is undone"
    store.close()
    store = StateStore(path)
    assert [one.version for one in store.load_all()] == ["1.0"]
    store.begin()
    store.save_version(record(version="2.0"))
    store.commit()
    store.close()
    assert [one.version for one in StateStore(path).load_all()] == ["1.0", "2.0"]


def test_a_file_to_which_nothing_was_written_is_not_left(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = StateStore(path)
    store.close()
    store.close()
    assert not path.exists()
