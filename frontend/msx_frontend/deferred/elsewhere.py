"""Jobs that another server runs: the one before this one, while it ends."""

from __future__ import annotations

from typing import NamedTuple

from msx_frontend.deferred.book import JobBook, Kept
from msx_frontend.deferred.entry import Entry


class EndedElsewhere(NamedTuple):
    """`kept`: the job as it is on the disk; None for one that was forgotten there."""

    entry: Entry
    kept: Kept | None


class JobsElsewhere:
    def __init__(self, book: JobBook) -> None:
        self._book = book
        self._entries: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: Entry) -> bool:
        return entry.id in self._entries

    def add(self, entry: Entry) -> None:
        self._entries[entry.id] = entry

    def drop(self, entry: Entry) -> None:
        """One that does not run elsewhere is not an error."""
        self._entries.pop(entry.id, None)

    def take_all(self) -> list[Entry]:
        """All of them, which run elsewhere no more."""
        taken = [*self._entries.values()]
        self._entries.clear()
        return taken

    async def ended(self) -> list[EndedElsewhere]:
        """Find the jobs that have ended there. Raises StoreUnavailable."""
        entries = [*self._entries.values()]
        found = await self._book.find_all([(entry.id, entry.owner) for entry in entries])
        both = map(EndedElsewhere, entries, found)
        return [one for one in both if one.kept is None or one.kept.has_ended]
