"""State that outlives a restart: the registered models, in `state.db` of the state folder (SQLite).

Each change is one transaction and is on the disk when its method returns. Methods block; call them from one thread
at a time.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from msx_frontend.models.state.file import StateFile, StateStoreError, damaged, errors_named
from msx_frontend.models.traffic import TrafficRule

T = TypeVar("T")

__all__ = ["StateStore", "StateStoreError", "StoredVersion", "StoredWorkflow"]

_COLUMNS = "name, version, url, digest, options, min_workers, max_workers, is_default, created_at"


_FORGET_ALIASES = "DELETE FROM aliases WHERE name NOT IN (SELECT name FROM versions)"

UNANSWERED = -1.0
"""Stands for the time of a registration that is saved, and not answered: a server that starts does not know it."""


class StoredVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One registered version: `url` as registered, `digest` of the archive, `created_at` in s since the epoch, or
    UNANSWERED."""

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
    """One registered workflow: `workers` are the least and most of each of its nodes, `created_at` as of versions."""

    name: str
    url: str
    workers: dict[str, tuple[int, int]]
    created_at: float


class StateStore:
    def __init__(self, path: Path) -> None:
        """Opens the file, or creates it with its folder. Raises StateStoreError."""
        self._file = StateFile(path)
        self.path = path
        self.new = self._file.new
        self._db = self._file.db
        self._transaction = self._file.transaction

    def begin(self) -> None:
        """The changes up to `commit` are one transaction; `close` before that undoes them. Raises StateStoreError."""
        self._file.begin()

    def commit(self) -> None:
        """Raises StateStoreError."""
        self._file.commit()

    def save_version(self, record: StoredVersion) -> None:
        """Add the version, or replace its record. A new default replaces the old one."""
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

    def forget_unanswered(self) -> list[str]:
        """Remove what was being registered when the last server ended. Returns what it was."""
        with self._transaction():
            versions = self._db.execute("SELECT name, version FROM versions WHERE created_at < 0").fetchall()
            workflows = self._db.execute("SELECT name FROM workflows WHERE created_at < 0").fetchall()
            for table in ("versions", "workflows") if versions or workflows else ():
                self._db.execute(f"DELETE FROM {table} WHERE created_at < 0")  # noqa: S608 - constants
            self._db.execute(_FORGET_ALIASES)
        return [f"model {name} {version}" for name, version in versions] + [f"workflow {name}" for (name,) in workflows]

    def set_default(self, name: str, version: str, rule: TrafficRule | None) -> None:
        """`rule` divides the model's traffic from then on. Raises StateStoreError for a version that was never
        saved."""
        with self._transaction():
            self._clear_default(name)
            self._change(name, version, "is_default = ?", True)
            self._divide(name, rule)

    def remove_version(self, name: str, version: str, rule: TrafficRule | None) -> None:
        """Remove a version; an unknown one is not an error. `rule` divides the traffic of the others."""
        with self._transaction():
            self._db.execute("DELETE FROM versions WHERE name = ? AND version = ?", (name, version))
            self._db.execute(_FORGET_ALIASES)
            self._divide(name, rule)

    def save_traffic(self, name: str, rule: TrafficRule | None) -> None:
        """How the traffic of a model is divided; None: it is not."""
        with self._transaction():
            self._divide(name, rule)

    def load_traffic(self) -> dict[str, TrafficRule]:
        """Rules by the name of the model."""
        return self._decoded("SELECT name, rule FROM traffic", TrafficRule)

    def save_aliases(self, name: str, aliases: Sequence[str] | None) -> None:
        """The list that an operator gave a model; None: no list."""
        with self._transaction():
            if aliases is None:
                self._db.execute("DELETE FROM aliases WHERE name = ?", (name,))
            else:
                values = name, msgspec.json.encode(aliases).decode()
                self._db.execute("INSERT OR REPLACE INTO aliases (name, aliases) VALUES (?, ?)", values)

    def load_aliases(self) -> dict[str, list[str]]:
        """Lists by the name of the model."""
        return self._decoded("SELECT name, aliases FROM aliases", list[str])

    def save_workflow(self, record: StoredWorkflow) -> None:
        values = msgspec.to_builtins(record) | {"workers": msgspec.json.encode(record.workers).decode()}
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO workflows (name, url, workers, created_at)"
                " VALUES (:name, :url, :workers, :created_at)",
                values,
            )

    def set_node_workers(self, workflow: str, node: str, min_workers: int, max_workers: int) -> None:
        """An unknown workflow is not an error: it is being registered or unregistered."""
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
        """Workflows in the order of registration."""
        with errors_named(self.path):
            rows = self._db.execute("SELECT name, url, workers, created_at FROM workflows ORDER BY id").fetchall()
        try:
            decoded = [(name, url, msgspec.json.decode(workers), at) for name, url, workers, at in rows]
            names = StoredWorkflow.__struct_fields__
            return [msgspec.convert(dict(zip(names, row, strict=True)), StoredWorkflow) for row in decoded]
        except msgspec.MsgspecError as exc:
            raise StateStoreError(damaged(self.path, exc)) from exc

    def load_all(self) -> list[StoredVersion]:
        """Versions in the order of registration."""
        with errors_named(self.path):
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM versions ORDER BY id").fetchall()  # noqa: S608
        return [self._record(row) for row in rows]

    def close(self) -> None:
        """May be called again."""
        self._file.close()

    def _decoded(self, query: str, kind: type[T]) -> dict[str, T]:
        """Values in JSON by names."""
        with errors_named(self.path):
            rows = self._db.execute(query).fetchall()
        try:
            return {name: msgspec.json.decode(value, type=kind) for name, value in rows}
        except msgspec.MsgspecError as exc:
            raise StateStoreError(damaged(self.path, exc)) from exc

    def _clear_default(self, name: str) -> None:
        self._db.execute("UPDATE versions SET is_default = 0 WHERE name = ? AND is_default", (name,))

    def _divide(self, name: str, rule: TrafficRule | None) -> None:
        if rule is None:
            self._db.execute("DELETE FROM traffic WHERE name = ?", (name,))
        else:
            values = name, msgspec.json.encode(rule).decode()
            self._db.execute("INSERT OR REPLACE INTO traffic (name, rule) VALUES (?, ?)", values)

    def _change(self, name: str, version: str, assignment: str, *values: int | str) -> None:
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
            raise StateStoreError(damaged(self.path, exc)) from exc
