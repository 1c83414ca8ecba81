"""Refuses hostile archives by their listing, before a byte is written."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from msx_archiver.errors import HostileArchiveError
from msx_archiver.members import ArchiveMember, MemberKind, path_problem
from msx_archiver.sizes import MIB, human


@dataclass(frozen=True, kw_only=True)
class ArchiveLimits:
    """The limits of an archive. Sizes in bytes; `max_ratio` is the unpacked size divided by the archive's size."""

    max_members: int = 100_000
    max_ratio: float = 200.0
    ratio_floor: int = 100 * MIB
    """Unpacked size below which the ratio is not checked."""
    max_size: int | None = None


class ExtractionGuard:
    """Admits the members of one archive one by one; raises HostileArchiveError, which names the member."""

    def __init__(self, archive: Path, archive_size: int, limits: ArchiveLimits) -> None:
        self._archive = archive
        self._archive_size = archive_size
        self._limits = limits
        self._kinds: dict[str, MemberKind] = {}
        self._total = 0

    def check_name(self, name: str) -> None:
        """Refuses a name that must not be unpacked. Call it before the name is normalised."""
        problem = path_problem(name)
        if problem:
            self.refuse(name, problem)

    def admit(self, member: ArchiveMember, *, replaces: bool = False) -> None:
        """Admits a member. `replaces`: it replaces an earlier file of the same name, which does not count."""
        self.check_name(member.name)
        if member.kind is MemberKind.SPECIAL:
            self.refuse(member.name, "is a device file, a pipe or something else that is not a file")
        if not (replaces and self._kinds.get(member.path) is member.kind is MemberKind.FILE):
            self._check_conflict(member)
        self._count(member)

    def finish(self, members: Iterable[ArchiveMember]) -> None:
        """Called after all members: a link must lead to a regular file of the same archive."""
        for member in members:
            if member.kind is MemberKind.LINK and self._kinds.get(member.target) is not MemberKind.FILE:
                self.refuse(member.name, f"links to '{member.target}', which is not a file of the archive")

    def refuse(self, name: str, problem: str) -> NoReturn:
        shown = name if len(name) <= 120 else name[:117] + "…"
        raise HostileArchiveError(f"{self._archive} is refused: its member {shown!r} {problem}.")

    def _check_conflict(self, member: ArchiveMember) -> None:
        known = self._kinds.get(member.path)
        if known is not None and not (known is member.kind is MemberKind.FOLDER):
            self.refuse(member.name, f"is there twice (the other is a {known.value})")
        self._add_parents(member)
        self._kinds[member.path] = member.kind

    def _add_parents(self, member: ArchiveMember) -> None:
        parent = member.path.rpartition("/")[0]
        while parent and parent not in self._kinds:
            self._kinds[parent] = MemberKind.FOLDER
            parent = parent.rpartition("/")[0]
        if parent and self._kinds[parent] is not MemberKind.FOLDER:
            self.refuse(member.name, f"lies in '{parent}', which is a {self._kinds[parent].value}")

    def _count(self, member: ArchiveMember) -> None:
        limits = self._limits
        self._total += member.size
        if len(self._kinds) > limits.max_members:
            self.refuse(member.name, f"exceeds the limit of {limits.max_members} files and folders")
        if member.size < 0:
            self.refuse(member.name, "has a negative size")
        if limits.max_size is not None and self._total > limits.max_size:
            self.refuse(member.name, f"exceeds the limit of {human(limits.max_size)} unpacked")
        if self._total > limits.ratio_floor and self._total > limits.max_ratio * self._archive_size:
            self.refuse(
                member.name,
                f"would unpack {human(self._archive_size)} to {human(self._total)} or more: the limit is "
                f"{limits.max_ratio:g} times the archive's size",
            )
