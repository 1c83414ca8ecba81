"""Records of one file, and what bounds them. Every method blocks, within the transaction of its caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from msx_frontend.store.errors import StoreUnavailable

DAY = 86_400.0
"""Seconds."""
OVERHEAD = 512
"""Bytes that a record counts beside its own: its rows in the tables."""
AT_ONCE = 200
"""The most records that one sweep removes: those behind it do not wait for long."""
_COLUMNS = "kind, id, owner, created, expires, head"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One record. `owner`: the name of the key that made it; `created`, `expires`: seconds since the epoch; `head`:
    what its kind says of it, read without its parts."""

    kind: str
    id: str
    owner: str
    created: float
    expires: float
    head: bytes = b""


class Bounds(NamedTuple):
    """The most records of a kind, and their bytes. `key` names the setting."""

    most: int
    size: int
    key: str
    drops_oldest: bool = False
    """A new record takes the place of the oldest, of the owner that has the most bytes; else it is refused."""
    share: float = 1.0
    """The part of both that one owner may have whose name is not empty, so that others find room."""


class Records:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, record: Record, parts: Mapping[str, bytes], bounds: Bounds) -> None:
        """Where there is no room, records of the kind go that had expired when this one was made. Raises
        StoreUnavailable; then nothing is added."""
        size = len(record.head) + OVERHEAD
        self._make_room(record, size + sum(map(len, parts.values())), bounds)
        row = self._db.execute(
            f"INSERT INTO records ({_COLUMNS}, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - constants
            (record.kind, record.id, record.owner, record.created, record.expires, record.head, size),
        )
        rows = [(row.lastrowid, name, data) for name, data in parts.items()]
        self._db.executemany("INSERT INTO parts VALUES (?, ?, 0, ?)", rows)

    def find(self, kind: str, id: str, owner: str, now: float) -> Record | None:
        """None for a record that there is not, that has expired, or that is another owner's."""
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM records WHERE kind = ? AND id = ? AND owner = ? AND expires > ?",  # noqa: S608
            (kind, id, owner, now),
        ).fetchone()
        return None if row is None else _record(row)

    def part(self, kind: str, id: str, name: str) -> bytes | None:
        row = self._db.execute(
            "SELECT data FROM parts JOIN records ON record = number WHERE kind = ? AND id = ? AND name = ?",
            (kind, id, name),
        ).fetchone()
        return None if row is None else bytes(row[0])

    def lasting(self, kind: str, end: float, behind: int, most: int) -> list[tuple[int, Record]]:
        """The records of a kind that expire at `end`, the oldest first, with their numbers; those behind the number
        `behind`."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS}, number FROM records WHERE kind = ? AND expires = ? AND number > ?"  # noqa: S608
            " ORDER BY number LIMIT ?",
            (kind, end, behind, most),
        ).fetchall()
        return [(row[-1], _record(row[:-1])) for row in rows]

    def newest(
        self, kind: str, owner: str | None, behind: str, most: int, ends: tuple[float, float], made_before: float = 0.0
    ) -> list[Record]:
        """Records of an owner, or of all, the newest first: those behind that with the id `behind`, or from the first
        where it is empty. Where that one is gone, the newest made before the time `made_before` is the first, and all
        behind it follow. `ends`: their end is later than the first, and not later than the second."""
        below = self._below(kind, behind, made_before) if behind else 1 << 62
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM records WHERE kind = ?1 AND (?2 IS NULL OR owner = ?2) AND number < ?3"  # noqa: S608
            " AND expires > ?4 AND expires <= ?5 ORDER BY number DESC LIMIT ?6",
            (kind, owner, below, *ends, most),
        ).fetchall()
        return [_record(row) for row in rows]

    def owner_of(self, kind: str, id: str, now: float) -> str | None:
        """None for a record that there is not, or that has expired."""
        row = self._db.execute(
            "SELECT owner FROM records WHERE kind = ? AND id = ? AND expires > ?", (kind, id, now)
        ).fetchone()
        return None if row is None else str(row[0])

    def every(self, kind: str) -> list[Record]:
        """All records of a kind, the oldest first."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM records WHERE kind = ? ORDER BY number",  # noqa: S608 - constants
            (kind,),
        ).fetchall()
        return [_record(row) for row in rows]

    def change(self, kind: str, id: str, head: bytes, expires: float) -> None:
        """Give a record another head and end. A record that is gone is not an error."""
        values = head, expires, kind, id
        self._db.execute("UPDATE records SET head = ?, expires = ? WHERE kind = ? AND id = ?", values)

    def keep_until(self, kind: str, id: str, expires: float) -> None:
        """Give a record another end. A record that is gone is not an error."""
        self._db.execute("UPDATE records SET expires = ? WHERE kind = ? AND id = ?", (expires, kind, id))

    def add_part(self, kind: str, id: str, name: str, data: bytes) -> None:
        """A record that is gone is not an error. No bound is checked: see `may_grow`."""
        self._db.execute(
            "INSERT INTO parts SELECT number, ?, 0, ? FROM records WHERE kind = ? AND id = ?", (name, data, kind, id)
        )

    def may_grow(self, kind: str, size: int, bounds: Bounds, now: float) -> bool:
        """Whether records of a kind may take so many bytes more; where need be, those go that have expired."""
        while self.totals().get(kind, (0, 0))[1] + size > bounds.size:
            if not self._drop_expired(kind, now):
                return False
        return True

    def drop_part(self, kind: str, id: str, name: str) -> None:
        self._db.execute(
            "DELETE FROM parts WHERE name = ? AND record = (SELECT number FROM records WHERE kind = ? AND id = ?)",
            (name, kind, id),
        )

    def delete(self, kind: str, id: str, owner: str) -> bool:
        """False where there is no such record."""
        done = self._db.execute("DELETE FROM records WHERE kind = ? AND id = ? AND owner = ?", (kind, id, owner))
        return done.rowcount > 0

    def sweep(self, now: float) -> int:
        """Remove some of the records that have expired, and give room back to the disk; returns how many."""
        done = self._db.execute(
            "DELETE FROM records WHERE number IN (SELECT number FROM records WHERE expires <= ? LIMIT ?)",
            (now, AT_ONCE),
        )
        self._db.execute("PRAGMA incremental_vacuum(1000)").fetchall()
        return done.rowcount

    def totals(self) -> dict[str, tuple[int, int]]:
        """The number of records of each kind, and their bytes."""
        rows = self._db.execute("SELECT kind, sum(count), sum(bytes) FROM totals GROUP BY kind").fetchall()
        return {kind: (count, size) for kind, count, size in rows}

    def _below(self, kind: str, id: str, made_before: float) -> int:
        """The number below which a list goes on behind a record."""
        row = self._db.execute("SELECT number FROM records WHERE kind = ? AND id = ?", (kind, id)).fetchone()
        row = (
            row
            or self._db.execute(
                "SELECT number + 1 FROM records WHERE kind = ? AND created < ? ORDER BY number DESC LIMIT 1",
                (kind, made_before),
            ).fetchone()
        )
        return int(row[0]) if row else 0

    def _make_room(self, record: Record, size: int, bounds: Bounds) -> None:
        kind = record.kind
        if size > bounds.size:
            raise StoreUnavailable(f"A record of {size} bytes is larger than all may be: {bounds.size} ({bounds.key}).")
        while reason := self._refusal(record, size, bounds):
            if self._drop_expired(kind, record.created):
                continue
            if not bounds.drops_oldest:
                raise StoreUnavailable(reason)
            self._drop_oldest(kind)

    def _refusal(self, record: Record, size: int, bounds: Bounds) -> str:
        """The reason why there is no room, or ""."""
        count, held = self.totals().get(record.kind, (0, 0))
        if count >= bounds.most or held + size > bounds.size:
            return f"The store is full: it takes {bounds.most} records of {bounds.size} bytes ({bounds.key})."
        if bounds.share < 1 and record.owner and self._is_over_share(record, size, bounds):
            return (
                f"The key {record.owner} has all that one key may: {bounds.share:.0%} of {bounds.most} records and of "
                f"{bounds.size} bytes ({bounds.key})."
            )
        return ""

    def _is_over_share(self, record: Record, size: int, bounds: Bounds) -> bool:
        row = self._db.execute(
            "SELECT count, bytes FROM totals WHERE kind = ? AND owner = ?", (record.kind, record.owner)
        ).fetchone()
        count, held = row or (0, 0)
        return count >= bounds.most * bounds.share or held + size > bounds.size * bounds.share

    def _drop_expired(self, kind: str, now: float) -> int:
        return self._db.execute(
            "DELETE FROM records WHERE number IN (SELECT number FROM records WHERE kind = ? AND expires <= ? LIMIT ?)",
            (kind, now, AT_ONCE),
        ).rowcount

    def _drop_oldest(self, kind: str) -> None:
        self._db.execute(
            "DELETE FROM records WHERE number = (SELECT min(number) FROM records WHERE kind = ?1 AND owner ="
            " (SELECT owner FROM totals WHERE kind = ?1 ORDER BY bytes DESC LIMIT 1))",
            (kind,),
        )


def _record(row: tuple[Any, ...]) -> Record:
    return Record(**dict(zip(_COLUMNS.split(", "), row, strict=True)))
