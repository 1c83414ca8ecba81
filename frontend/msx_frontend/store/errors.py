"""Errors of the store, as sentences that name its file and the remedy."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msx_archiver.room import room
from msx_core.service_errors import ServiceUnavailable
from msx_core.start_errors import StartError

FULL = "full"
"""The word in SQLite's error for a disk without room."""


class StoreError(StartError):
    """The store cannot be opened; the message names the file and the remedy."""


class StoreUnavailable(ServiceUnavailable):
    """The store cannot be read or written now, or has no room: nothing of the call is kept."""


def damaged(path: Path, reason: object) -> str:
    return (
        f"{path} is damaged ({reason}): put a backup in its place, or remove it, together with {path.name}-wal and "
        f"{path.name}-shm, to start without what is kept in it"
    )


@contextmanager
def errors_told(path: Path, needs: int | None = None) -> Iterator[None]:
    """Raise SQLite's errors as StoreUnavailable; `needs` are the bytes that were to be written."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
        raise  # a bug, not the file's
    except sqlite3.Error as error:
        if FULL in str(error):
            raise StoreUnavailable(
                f"{path} cannot take another record: {room(path, needs)}. Make room there."
            ) from error
        if isinstance(error, sqlite3.OperationalError):
            raise StoreUnavailable(f"{path} cannot be read or written: {error}. Try again later.") from error
        raise StoreUnavailable(f"{damaged(path, error)}.") from error
