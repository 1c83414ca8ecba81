"""Copies the state, whether the server runs or not."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msx_archiver.room import why
from msx_frontend.models.state.file import PATIENCE, StateStoreError, copy_whole, errors_named, schema_of


class Backup(NamedTuple):
    path: Path
    schema: int
    versions: int
    """The number of model versions."""
    workflows: int


def back_up(state: Path, folder: Path) -> Backup:
    """Copy the state into `folder`, under its own name. The file of an earlier backup is replaced by the complete
    new one.

    Raises StateStoreError.
    """
    size, target = _size(state), folder / state.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if target.exists() and target.samefile(state):
            raise StateStoreError(f"--backup {folder}: {target} is the state itself; name another folder")
        with errors_named(state), closing(_opened(state)) as db:
            return _copied(db, target)
    except OSError as error:
        raise StateStoreError(f"--backup {folder}: {target} cannot be written: {why(error, folder, size)}") from error


def _size(state: Path) -> int:
    try:
        with state.open("rb") as file:
            return file.seek(0, 2)
    except FileNotFoundError:
        raise StateStoreError(
            f"{state} does not exist, so there is nothing to back up: a server with --ncs, or one that was never "
            "started, keeps no state. Name the model store (--model-store) or the state folder (--state-dir)"
        ) from None
    except OSError as error:
        raise StateStoreError(f"{state} cannot be read: {error.strerror}") from error


def _opened(state: Path) -> sqlite3.Connection:
    """Opened for writing, because the first read undoes the unfinished change of a server that was killed."""
    return sqlite3.connect(f"{state.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=PATIENCE)


def _copied(db: sqlite3.Connection, target: Path) -> Backup:
    if not (schema := schema_of(db)):
        raise sqlite3.DatabaseError("it has no tables")
    copy_whole(db, target)
    with closing(sqlite3.connect(target)) as copy:
        counts = [_count(copy, table) for table in ("versions", "workflows")]
    return Backup(target, schema, *counts)


def _count(db: sqlite3.Connection, table: str) -> int:
    """0 for a table that this schema does not have."""
    known = db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()[0]
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) if known else 0  # noqa: S608 - constants
