"""The SQLite file of the state: opened, checked, migrated, copied; its errors as sentences.

A rollback journal instead of a write-ahead log: all that was committed is in the one file, so that a copy of it is a
backup, and other programs may read it at any time.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from msx_archiver.room import room, why
from msx_core.start_errors import StartError
from msx_frontend import __version__
from msx_frontend.models.state import schema
from msx_frontend.whole_file import sweep

PATIENCE = 5.0
"""Seconds that a change waits for another program that reads the file."""

_MOST_OF_A_CHANGE = 64 << 10
"""Bytes, about, with SQLite's journal."""


_ALONE = "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"
_WITHIN = "SAVEPOINT change", "RELEASE change", "ROLLBACK TO change"
"""How a change begins, ends, and is undone: by itself, or within a transaction."""


class StateStoreError(StartError):
    """The state cannot be read or written; the message names the file and the remedy."""


class StateFile:
    """Used by one server at a time, which holds the lock of the folder. Methods block."""

    def __init__(self, path: Path) -> None:
        """Opens it, or creates it with its folder. Raises StateStoreError."""
        self.path = path
        self.new = False
        """The file was created by this start."""
        self._committed = False
        try:
            self.new = not path.exists()
            if self.new:
                _create(path)
            _make_private(path)
        except OSError as exc:
            raise StateStoreError(
                f"{path}: the server's state cannot be opened: {why(exc, path, _MOST_OF_A_CHANGE)}"
            ) from exc
        with errors_named(path):
            self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=PATIENCE)
        try:
            with errors_named(path):
                self._prepare()
        except BaseException:
            self.db.close()
            raise

    def begin(self) -> None:
        """Begin a transaction: `commit` writes it to the disk; `close` before that undoes it."""
        with errors_named(self.path):
            self.db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        with errors_named(self.path):
            self.db.execute("COMMIT")
        self._committed = True

    def close(self) -> None:
        """May be called again. A file that was made just now, and to which nothing was committed, is removed."""
        self.db.close()
        if self.new and not self._committed:
            self.path.unlink(missing_ok=True)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A change that is on the disk at its end, or at `commit` after `begin`. A change that fails is undone."""
        within = self.db.in_transaction
        begin, end, undo = _WITHIN if within else _ALONE
        with errors_named(self.path):
            self.db.execute(begin)
            try:
                yield self.db
                self.db.execute(end)
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute(undo)
                raise
        self._committed = self._committed or not within

    def _prepare(self) -> None:
        self.db.execute("PRAGMA locking_mode = EXCLUSIVE")  # a log of an older MSX is read on any file system then
        version = _known_schema(self.db, self.path)
        self.db.execute("PRAGMA journal_mode = DELETE")
        self.db.execute("PRAGMA locking_mode = NORMAL")
        schema_of(self.db)  # lets the lock go
        self.db.execute("PRAGMA synchronous = EXTRA")
        if version < len(schema.SCRIPTS):
            self._keep(version)
            self.db.executescript(schema.migration(version))

    def _keep(self, version: int) -> None:
        target = copy_of_schema(self.path, version)
        try:
            copy_whole(self.db, target)
        except (OSError, sqlite3.Error) as exc:
            reason = why(exc, target, self.path.stat().st_size) if isinstance(exc, OSError) else exc
            raise StateStoreError(
                f"{self.path} has schema {version} and was not migrated, because its backup {target} cannot be "
                f"written: {reason}"
            ) from exc


def check_state(path: Path) -> int:
    """The schema of the file, which is read as a start reads it, and not migrated. The unfinished change of a server
    that was killed is undone, as by any program that reads the file. Raises StateStoreError."""
    with errors_named(path):
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=PATIENCE)
        with closing(db):
            return _known_schema(db, path)


def _known_schema(db: sqlite3.Connection, path: Path) -> int:
    version = schema_of(db)
    if not version:
        raise sqlite3.DatabaseError("it has no tables" if path.stat().st_size else "it is empty")
    if version > len(schema.SCRIPTS):
        raise StateStoreError(_too_new(path, version, _writer(db)))
    check(db)
    return version


def _writer(db: sqlite3.Connection) -> str:
    """The MSX that brought the file to its schema."""
    try:
        (version,) = db.execute("SELECT msx FROM written_by").fetchone()
    except (sqlite3.Error, TypeError):
        return "a newer MSX"
    return f"MSX {version}"


def _too_new(path: Path, version: int, writer: str) -> str:
    known = len(schema.SCRIPTS)
    copy = copy_of_schema(path, known)
    older = f"restore {copy}, the copy from before the migration" if copy.exists() else "restore a backup"
    return (
        f"{path} was written by {writer} (schema {version}); this is MSX {__version__}, which reads schemas up to "
        f"{known}: install {writer} again, or {older}, or start with --ncs"
    )


def _create(path: Path) -> None:
    """Make the file with its folder, in one step, so that one without tables is never a start that was killed. A
    journal that is there already belongs to a file that was removed. Raises OSError, StateStoreError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for kind in ("journal", "wal", "shm"):
        path.with_name(f"{path.name}-{kind}").unlink(missing_ok=True)
    with errors_named(path), closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.executescript(schema.migration(0))
        copy_whole(made, path)


def _make_private(path: Path) -> None:
    """Readable by the server's user alone, also a copy that was put there, because URLs may hold credentials. SQLite
    gives its journal the same mode. Raises OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(PermissionError):  # the file of another user, which this one may write
        os.fchmod(fd, 0o600)
    os.close(fd)


def copy_of_schema(path: Path, version: int) -> Path:
    """The path of the copy that is kept before a migration from that version."""
    return path.with_name(f"{path.stem}-schema-{version}{path.suffix}")


def copy_whole(source: sqlite3.Connection, target: Path) -> None:
    """Put a checked copy at `target`: complete, private, and on the disk. Raises OSError, sqlite3.Error."""
    aside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    sweep(target.parent, target.name)
    try:
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(aside, isolation_level=None)) as copy, _held(source):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            check(copy)
        aside.replace(target)
        _on_disk(target.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _held(source: sqlite3.Connection) -> Iterator[None]:
    """Take the lock for reading, or raise after the connection's time-out: `backup` itself would wait forever."""
    source.execute("BEGIN")
    try:
        schema_of(source)
        yield
    finally:
        source.execute("ROLLBACK")


def _on_disk(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def schema_of(db: sqlite3.Connection) -> int:
    """0 for a file without tables of ours."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def check(db: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError for a damaged file."""
    found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(found)


@contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as StateStoreError."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # ours, not the file's: closed, or used from two threads at once
    except sqlite3.OperationalError as exc:
        if "locked" in str(exc):
            raise StateStoreError(
                f"{path} has been held by another program for {PATIENCE:g} s, a SQLite shell in a transaction or a "
                "server of an older MSX: end it, and try again"
            ) from exc
        left = f" ({room(path, _MOST_OF_A_CHANGE)})" if "full" in str(exc) else ""
        raise StateStoreError(f"{path}: the server's state cannot be written: {exc}{left}") from exc
    except sqlite3.DatabaseError as exc:
        raise StateStoreError(damaged(path, exc)) from exc


def damaged(path: Path, reason: Exception) -> str:
    return (
        f"{path} is damaged ({reason}): put a backup in its place, or remove it together with {path.name}-journal and "
        f"{path.name}-wal to start without the models registered in it, or start with --ncs"
    )
