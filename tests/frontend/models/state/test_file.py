"""The file of the state: others read it while a server has it, and it outlives upgrades."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from msx_frontend import __version__
from msx_frontend.models.state import schema as state_schema
from msx_frontend.models.state.backup import back_up
from msx_frontend.models.state.file import StateStoreError
from msx_frontend.models.state.store import StateStore
from tests.frontend.models.state.test_store import record, workflow

SCRIPTS = state_schema.SCRIPTS
NOW = len(SCRIPTS)
"""The version of this server's schema."""
NEXT = (*SCRIPTS, "ALTER TABLE versions ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';")
"""The schema of an MSX to come."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".msx" / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[StateStore]:
    store = StateStore(path)
    store.save_version(record())
    yield store
    store.close()


def schema(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def versions(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM versions").fetchone()[0])


# -- backup --


def test_a_plain_copy_of_the_file_is_a_backup(store: StateStore, path: Path, tmp_path: Path) -> None:
    assert [entry.name for entry in path.parent.iterdir()] == ["state.db"]
    shutil.copy(path, tmp_path / "copy.db")
    assert versions(tmp_path / "copy.db") == 1


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_sqlites_own_backup_while_a_server_has_the_file(store: StateStore, path: Path, tmp_path: Path) -> None:
    command = ["sqlite3", str(path), f".backup {tmp_path / 'copy.db'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert versions(tmp_path / "copy.db") == 1
    store.save_version(record("2"))


def test_a_backup_is_a_state(store: StateStore, path: Path, tmp_path: Path) -> None:
    store.save_workflow(workflow())
    made = back_up(path, tmp_path / "b" / "today")
    assert made == (tmp_path / "b" / "today" / "state.db", NOW, 1, 1)
    assert [entry.name for entry in made.path.parent.iterdir()] == ["state.db"]
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    store.save_version(record("2"))
    assert back_up(path, tmp_path / "b" / "today").versions == 2, "a later one takes its place"
    restored = StateStore(made.path)
    assert restored.load_all() == [record(), record("2")]
    assert restored.load_workflows() == [workflow()]
    restored.close()


def test_a_state_that_others_could_read_is_closed_to_them(path: Path, store: StateStore) -> None:
    """A copy that was put there, whose URLs may have passwords."""
    store.close()
    path.chmod(0o644)
    StateStore(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_backup_of_a_state_that_nobody_has_with_an_unfinished_change(store: StateStore, path: Path) -> None:
    """As after SIGKILL: the journal of the change is there, and the first reader undoes it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE versions SET url = ?", ("x" * 100_000,))
        files = {name: (path.parent / name).read_bytes() for name in ("state.db", "state.db-journal")}
        db.execute("ROLLBACK")
    killed = path.parent.parent / "killed"
    killed.mkdir()
    for name, data in files.items():
        (killed / name).write_bytes(data)
    assert back_up(killed / "state.db", killed / "backup").versions == 1


def test_what_a_killed_backup_left_is_swept(store: StateStore, path: Path, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "state.db.99999999.tmp").touch()
    back_up(path, tmp_path / "b")
    assert [entry.name for entry in (tmp_path / "b").iterdir()] == ["state.db"]


def test_a_backup_of_nothing(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StateStoreError, match=r"state\.db does not exist, so there is nothing to back up"):
        back_up(path, tmp_path / "b")
    assert not (tmp_path / "b").exists()
    path.mkdir(parents=True)
    with pytest.raises(StateStoreError, match=r"state\.db cannot be read: Is a directory"):
        back_up(path, tmp_path / "b")


def test_a_backup_onto_the_state(store: StateStore, path: Path) -> None:
    with pytest.raises(StateStoreError, match="is the state itself; name another folder"):
        back_up(path, path.parent)
    store.save_version(record("2"))


def test_a_backup_that_cannot_be_written(store: StateStore, path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateStoreError, match=r"^--backup .*/file: .*/file/state\.db cannot be written: File exists"):
        back_up(path, tmp_path / "file")


def test_a_damaged_state_leaves_the_backup_of_before(store: StateStore, path: Path, tmp_path: Path) -> None:
    made = back_up(path, tmp_path / "b")
    data = bytearray(path.read_bytes())
    data[4096 : 4096 + 64] = b"x" * 64
    path.write_bytes(data)
    with pytest.raises(StateStoreError, match="is damaged"):
        back_up(path, tmp_path / "b")
    assert versions(made.path) == 1


# -- a file that was emptied --


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def without_tables(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 7")


def without_its_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 0")


@pytest.mark.parametrize("lose", [emptied, without_tables, without_its_version])
def test_a_state_that_has_lost_everything_is_damaged(
    store: StateStore, path: Path, lose: Callable[[Path], None]
) -> None:
    store.close()
    lose(path)
    left = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StateStoreError, match=rf"^{path} is damaged \(.*\): put a backup in its place, or remove"):
            StateStore(path)
        assert path.read_bytes() == left
    path.unlink()
    StateStore(path).close()


def test_a_server_that_is_killed_while_it_makes_the_file_leaves_no_empty_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def killed(*_: object) -> None:
        seen.extend(entry.name for entry in path.parent.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        StateStore(path)
    assert seen
    assert "state.db" not in seen


def test_the_journal_of_a_state_that_was_removed_is_not_read(store: StateStore, path: Path) -> None:
    """It would undo pages that the new file has not."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE versions SET url = ?", ("x" * 100_000,))
        journal = (path.parent / "state.db-journal").read_bytes()
        db.execute("ROLLBACK")
    store.close()
    path.unlink()
    (path.parent / "state.db-journal").write_bytes(journal)
    again = StateStore(path)
    assert again.new
    assert again.load_all() == []
    again.close()


# -- upgrade and downgrade --


def test_an_older_state_is_migrated_once_and_a_copy_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schema 1 with a write-ahead log is what the first MSX wrote."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(f"{SCRIPTS[0]} PRAGMA user_version = 1;")
        db.execute("INSERT INTO versions VALUES (1, 'm', '1.0', 'm.mar', 'd', '{}', 1, 2, 0, 1.5)")
        db.commit()
    store = StateStore(path)
    assert store.load_all() == [record(options={})]
    store.save_version(record("2"))
    store.save_workflow(workflow())
    store.close()
    copy = path.parent / "state-schema-1.db"
    assert (schema(path), schema(copy), versions(copy)) == (NOW, 1, 1)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    before = copy.stat().st_mtime_ns
    StateStore(path).close()
    assert copy.stat().st_mtime_ns == before, "once"
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["state-schema-1.db", "state.db"]


def test_up_and_down_again(store: StateStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer state is left as it is by an older server, which takes the copy of before."""
    store.close()
    with monkeypatch.context() as newer:
        newer.setattr(state_schema, "SCRIPTS", NEXT)
        newer.setattr(state_schema, "__version__", "99.1")
        StateStore(path).close()
    copy, data = path.parent / f"state-schema-{NOW}.db", path.read_bytes()
    with pytest.raises(StateStoreError) as info:
        StateStore(path)
    assert str(info.value) == (
        f"{path} was written by MSX 99.1 (schema {NOW + 1}); this is MSX {__version__}, which reads schemas up to "
        f"{NOW}: install MSX 99.1 again, or restore {copy}, the copy from before the migration, or start with --ncs"
    )
    assert path.read_bytes() == data
    shutil.copy(copy, path)
    again = StateStore(path)
    assert again.load_all() == [record()]
    again.close()


def test_a_newer_state_without_a_copy(store: StateStore, path: Path) -> None:
    store.close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript("DROP TABLE written_by; PRAGMA user_version = 99;")
    said = rf"was written by a newer MSX \(schema 99\); .* up to {NOW}: install a newer MSX again, or restore a"
    with pytest.raises(StateStoreError, match=said):
        StateStore(path)


def test_without_a_copy_nothing_is_migrated(store: StateStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.close()
    monkeypatch.setattr(state_schema, "SCRIPTS", NEXT)
    (path.parent / f"state-schema-{NOW}.db").mkdir()
    with pytest.raises(StateStoreError, match=rf"state\.db has schema {NOW} and was not migrated, because its backup"):
        StateStore(path)
    assert schema(path) == NOW
    assert sorted(entry.name for entry in path.parent.iterdir()) == [f"state-schema-{NOW}.db", "state.db"]


def test_a_migration_that_fails_changes_nothing(store: StateStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.close()
    monkeypatch.setattr(state_schema, "SCRIPTS", (*NEXT, "CREATE TABLE versions (x);"))
    with pytest.raises(StateStoreError, match="cannot be written: table versions already exists"):
        StateStore(path)
    assert schema(path) == NOW
    monkeypatch.setattr(state_schema, "SCRIPTS", NEXT)
    StateStore(path).close()
    assert schema(path) == NOW + 1
