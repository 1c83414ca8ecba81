"""What a restarted server must know: the registered models, in `state.db` of the state folder (SQLite).

Each change is one transaction and is on the disk when its method returns. Methods block; call them from one thread
at a time. While a server lives, the file is locked, so that a second one on the same model store is told so.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from msx_archiver.room import room, why
from msx_frontend.start_errors import StartError

# One script per schema version; a database of version n gets the scripts from n on.
_MIGRATIONS = (
    """
    CREATE TABLE versions (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        url TEXT NOT NULL,
        digest TEXT NOT NULL,
        options TEXT NOT NULL,
        min_workers INTEGER NOT NULL,
        max_workers INTEGER NOT NULL,
        is_default INTEGER NOT NULL,
        created_at REAL NOT NULL,
        UNIQUE (name, version)
    );
    CREATE UNIQUE INDEX one_default ON versions (name) WHERE is_default;
    """,
    """
    CREATE TABLE workflows (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        url TEXT NOT NULL,
        workers TEXT NOT NULL,
        created_at REAL NOT NULL
    );
    """,
)
_COLUMNS = "name, version, url, digest, options, min_workers, max_workers, is_default, created_at"

_MOST_OF_A_CHANGE = 64 << 10
"""Bytes, about, with SQLite's journal."""


class StateStoreError(StartError):
    """The state cannot be read or written; the message names the file and the remedy."""


class StoredVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One registered version: `url` as registered, `digest` of the archive, `created_at` in s since the epoch."""

    name: str
    version: str
    url: str
    digest: str
    options: dict[str, Any]
    min_workers: int
    max_workers: int
    is_default: bool
    created_at: float


class StoredWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """One registered workflow: `workers` are the least and most of each of its nodes."""

    name: str
    url: str
    workers: dict[str, tuple[int, int]]
    created_at: float


class StateStore:
    def __init__(self, path: Path) -> None:
        """Opens the database, or creates it with its folder. Raises StateStoreError."""
        self.path = path
        self.new = False
        """The database was made just now."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # URLs may hold credentials. SQLite gives its journal the same mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as exc:
            raise StateStoreError(
                f"{path}: the server's state cannot be opened: {why(exc, path, _MOST_OF_A_CHANGE)}"
            ) from exc
        with self._errors_named():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
        try:
            with self._errors_named():
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def save_version(self, record: StoredVersion) -> None:
        """Adds the version, or replaces what is known of it. A new default takes the place of the old one."""
        values = msgspec.to_builtins(record) | {"options": msgspec.json.encode(record.options).decode()}
        with self._transaction():
            if record.is_default:
                self._clear_default(record.name)
            self._db.execute(
                f"INSERT INTO versions ({_COLUMNS}) VALUES (:{_COLUMNS.replace(', ', ', :')})"  # noqa: S608 - constants
                " ON CONFLICT (name, version) DO UPDATE SET url = excluded.url, digest = excluded.digest,"
                " options = excluded.options, min_workers = excluded.min_workers, max_workers = excluded.max_workers,"
                " is_default = excluded.is_default, created_at = excluded.created_at",
                values,
            )

    def set_workers(self, name: str, version: str, min_workers: int, max_workers: int) -> None:
        """Raises StateStoreError for a version that was never saved, like `set_default`."""
        with self._transaction():
            self._change(name, version, "min_workers = ?, max_workers = ?", min_workers, max_workers)

    def set_default(self, name: str, version: str) -> None:
        with self._transaction():
            self._clear_default(name)
            self._change(name, version, "is_default = ?", True)

    def remove_version(self, name: str, version: str) -> None:
        """Of an unknown version too."""
        with self._transaction():
            self._db.execute("DELETE FROM versions WHERE name = ? AND version = ?", (name, version))

    def save_workflow(self, record: StoredWorkflow) -> None:
        values = msgspec.to_builtins(record) | {"workers": msgspec.json.encode(record.workers).decode()}
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO workflows (name, url, workers, created_at)"
                " VALUES (:name, :url, :workers, :created_at)",
                values,
            )

    def set_node_workers(self, workflow: str, node: str, min_workers: int, max_workers: int) -> None:
        """Of an unknown workflow too: it is just being registered or unregistered."""
        with self._transaction():
            self._db.execute(
                "UPDATE workflows SET workers = json_set(workers, '$.' || json_quote(?), json_array(?, ?))"
                " WHERE name = ?",
                (node, min_workers, max_workers, workflow),
            )

    def remove_workflow(self, name: str) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM workflows WHERE name = ?", (name,))

    def load_workflows(self) -> list[StoredWorkflow]:
        """In the order of registration."""
        with self._errors_named():
            rows = self._db.execute("SELECT name, url, workers, created_at FROM workflows ORDER BY id").fetchall()
        try:
            decoded = [(name, url, msgspec.json.decode(workers), at) for name, url, workers, at in rows]
            names = StoredWorkflow.__struct_fields__
            return [msgspec.convert(dict(zip(names, row, strict=True)), StoredWorkflow) for row in decoded]
        except msgspec.MsgspecError as exc:
            raise StateStoreError(self._damaged(exc)) from exc

    def load_all(self) -> list[StoredVersion]:
        """In the order of registration."""
        with self._errors_named():
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM versions ORDER BY id").fetchall()  # noqa: S608
        return [self._record(row) for row in rows]

    def close(self) -> None:
        """May be called again."""
        self._db.close()

    def _prepare(self) -> None:
        # Held from the first read on, for as long as the connection lives.
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        found = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        self._migrate()

    def _migrate(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(_MIGRATIONS):
            raise StateStoreError(
                f"{self.path} was written by a newer MSX (schema {version}, this one knows {len(_MIGRATIONS)}): "
                "upgrade, or start with --ncs"
            )
        self.new = version == 0
        for number, script in enumerate(_MIGRATIONS[version:], version + 1):
            self._db.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")

    def _clear_default(self, name: str) -> None:
        self._db.execute("UPDATE versions SET is_default = 0 WHERE name = ? AND is_default", (name,))

    def _change(self, name: str, version: str, assignment: str, *values: int) -> None:
        done = self._db.execute(
            f"UPDATE versions SET {assignment} WHERE name = ? AND version = ?",  # noqa: S608 - constants
            (*values, name, version),
        )
        if done.rowcount == 0:
            raise StateStoreError(f"{self.path}: has no version {version} of model {name}")

    def _record(self, row: tuple[Any, ...]) -> StoredVersion:
        fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
        try:
            options = msgspec.json.decode(fields["options"])
            return msgspec.convert(fields | {"options": options}, StoredVersion, strict=False)
        except msgspec.MsgspecError as exc:
            raise StateStoreError(self._damaged(exc)) from exc

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors_named():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # ours, not the file's: closed, or used from two threads at once
        except sqlite3.OperationalError as exc:
            if "locked" in str(exc):
                raise StateStoreError(
                    f"{self.path} is in use by another server: stop it, give this one its own --model-store, "
                    "or start it with --ncs"
                ) from exc
            left = f" ({room(self.path, _MOST_OF_A_CHANGE)})" if "full" in str(exc) else ""
            raise StateStoreError(f"{self.path}: the server's state cannot be written: {exc}{left}") from exc
        except sqlite3.DatabaseError as exc:
            raise StateStoreError(self._damaged(exc)) from exc

    def _damaged(self, reason: Exception) -> str:
        return (
            f"{self.path} is damaged ({reason}): remove it together with {self.path.name}-wal to start without the "
            "models registered in it, or start with --ncs"
        )
