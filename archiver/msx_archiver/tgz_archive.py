"""Gzipped tar archives: `--archive-format tgz`, and SageMaker's `model.tar.gz`."""

import gzip
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from msx_archiver.archive import Archive, damage_named
from msx_archiver.copying import ByteSource, FilePart
from msx_archiver.guard import ArchiveLimits, ExtractionGuard
from msx_archiver.members import ArchiveMember, MemberKind, link_target, normalise, strip_single_root
from msx_archiver.schema import ArchiveSchema, M
from msx_archiver.sizes import MIB

_MAX_HEADER = MIB
_HEADERS_PER_MEMBER = 4096
_MAX_PADDING = MIB


class TgzArchive(Archive[M]):
    format = "tgz"

    def __init__(self, path: Path, schema: ArchiveSchema[M], limits: ArchiveLimits) -> None:
        super().__init__(path, schema)
        self._gzip = gzip.open(path, "rb")  # noqa: SIM115
        try:
            with damage_named(path):
                self._list(ExtractionGuard(path, path.stat().st_size, limits), limits)
        except BaseException:
            self._gzip.close()
            raise

    def close(self) -> None:
        self._gzip.close()

    @contextmanager
    def open(self, member: ArchiveMember) -> Iterator[ByteSource]:
        offset, size = self._places[self._target(member)]
        self._gzip.seek(offset)
        yield FilePart(self._gzip, size)

    def _target(self, member: ArchiveMember) -> str:
        return self._by_path[member.target].name if member.kind is MemberKind.LINK else member.name

    def _list(self, guard: ExtractionGuard, limits: ArchiveLimits) -> None:
        headers = _Headers(self._gzip, limits.max_members * _HEADERS_PER_MEMBER)
        self._places: dict[str, tuple[int, int]] = {}
        listed: dict[str, ArchiveMember] = {}
        with tarfile.open(fileobj=cast(IO[bytes], headers), mode="r:") as tar:
            for info in tar:
                if info.isdir() and not normalise(info.name):
                    continue  # `tar -C folder .` begins with `./`
                member = _member(info, guard)
                guard.admit(member, replaces=member.name in listed and self._is_manifest(member.name))
                self._places[member.name] = (info.offset_data, info.size)
                listed[member.name] = member
        guard.finish(listed.values())
        self._read_to_the_end()
        self.members = strip_single_root(list(listed.values()), self.schema.manifest_path)
        self._by_path = {member.path: member for member in self.members}

    def _read_to_the_end(self) -> None:
        """Reads to the end, where gzip checks its checksum; tar stops before it."""
        for _ in range(_MAX_PADDING >> 16):
            if not self._gzip.read(1 << 16):
                return
        raise tarfile.ReadError("there is more after the last member")


class _Headers:
    """The stream from which tarfile reads headers, with a limit, because a header may claim to be gigabytes long."""

    def __init__(self, file: gzip.GzipFile, limit: int) -> None:
        self._file = file
        self._left = limit
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        self._left -= size
        if not 0 <= size <= _MAX_HEADER or self._left < 0:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._file.read(size)


def _member(info: tarfile.TarInfo, guard: ExtractionGuard) -> ArchiveMember:
    guard.check_name(info.name)
    path = normalise(info.name)
    if info.issym() or info.islnk():
        target = link_target(path, info.linkname, relative=info.issym())
        if target is None:
            guard.refuse(info.name, f"links out of the model, to {info.linkname!r}")
        return ArchiveMember(info.name, path, MemberKind.LINK, target=target)
    return ArchiveMember(info.name, path, _kind(info), info.size, bool(info.mode & 0o111))


def _kind(info: tarfile.TarInfo) -> MemberKind:
    if info.isdir():
        return MemberKind.FOLDER
    return MemberKind.FILE if info.isreg() and not info.issparse() else MemberKind.SPECIAL
