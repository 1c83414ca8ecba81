"""The SQLite file of the store: opened, checked, made.

A write-ahead log: what is committed is on the disk after one write, and many changes share it.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from msx_archiver.room import why
from msx_frontend.store.errors import StoreError, damaged
from msx_frontend.store.schema import TABLES, VERSION

PATIENCE = 5.0
"""Seconds that a change waits for another program that reads the file."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file, or make it, readable by this user alone. An unfinished change of a server that was killed is
    undone. Blocks: a file is read to its end. Raises StoreError."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"{path}: the store cannot be opened: {why(error, path)}") from error
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=PATIENCE)
    try:
        _prepare(db, path)
    except BaseException as error:
        db.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise StoreError(damaged(path, error)) from error
        raise
    return db


def check_file(path: Path) -> int:
    """The schema of the file, which is read as a start reads it, and not changed. Raises StoreError."""
    place = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(place, uri=True, isolation_level=None, timeout=PATIENCE)) as db:
            return _known_version(db, path)
    except sqlite3.DatabaseError as error:
        raise StoreError(damaged(path, error)) from error


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    version = _known_version(db, path)
    if not version:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    if not version:
        db.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")


def _known_version(db: sqlite3.Connection, path: Path) -> int:
    """0 for a new file."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise StoreError(f"{path} was written by a newer MSX: install that again, or remove the file")
    if version:
        _check(db)
    elif path.stat().st_size:
        raise sqlite3.DatabaseError("it has no tables")
    return version


def _check(db: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError for a file that was cut off or changed."""
    found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(found)
