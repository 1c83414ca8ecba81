"""Zip archives: TorchServe's `.mar`."""

import mmap
import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from msx_archiver.archive import Archive, View, damage_named
from msx_archiver.copying import ByteSource, FilePart, Progress, ignore
from msx_archiver.guard import ArchiveLimits, ExtractionGuard
from msx_archiver.members import ArchiveMember, MemberKind, normalise, strip_single_root
from msx_archiver.ranges import copy_range
from msx_archiver.schema import ArchiveSchema, M
from msx_core.manifest import FileEntry

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 0x1


class ZipArchive(Archive[M]):
    format = "zip"

    def __init__(self, path: Path, schema: ArchiveSchema[M], limits: ArchiveLimits) -> None:
        super().__init__(path, schema)
        self._file = path.open("rb")
        try:
            with damage_named(path):
                self._zip = zipfile.ZipFile(self._file)
            self._list(ExtractionGuard(path, path.stat().st_size, limits))
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._zip.close()
        self._file.close()

    @contextmanager
    def open(self, member: ArchiveMember) -> Iterator[ByteSource]:
        info = self._infos[member.name]
        if self._is_plain(member):
            self._file.seek(self._data_offset(info))
            yield FilePart(self._file, info.file_size)
        else:
            with self._zip.open(info) as source:
                yield source

    def copy(self, member: ArchiveMember, target: BinaryIO, progress: Progress = ignore) -> FileEntry:
        if not self._is_plain(member):
            return super().copy(member, target, progress)
        info = self._infos[member.name]
        return copy_range(self._file.fileno(), self._data_offset(info), info.file_size, target.fileno(), progress)

    @contextmanager
    def view(self, member: ArchiveMember) -> Iterator[View]:
        info = self._infos[member.name]
        if not self._is_stored(info) or not member.size:
            with super().view(member) as view:
                yield view
            return
        with damage_named(self.path, member.path):
            start = self._data_offset(info)
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            data.madvise(mmap.MADV_RANDOM)
            yield data, start, start + info.file_size

    def _list(self, guard: ExtractionGuard) -> None:
        self._infos: dict[str, zipfile.ZipInfo] = {}
        listed: dict[str, ArchiveMember] = {}
        for info in sorted(self._zip.infolist(), key=lambda info: info.header_offset):
            member = self._member(info, guard)
            guard.admit(member, replaces=member.name in listed and self._is_manifest(member.name))
            self._infos[member.name] = info
            listed[member.name] = member
        self.members = strip_single_root(list(listed.values()), self.schema.manifest_path)

    def _member(self, info: zipfile.ZipInfo, guard: ExtractionGuard) -> ArchiveMember:
        # zipfile cuts names at NUL and lets an extra field replace them; the original is what must be judged.
        name = info.orig_filename
        for alias in (name, info.filename):
            guard.check_name(alias)
        mode = info.external_attr >> 16
        if stat.S_ISLNK(mode):
            guard.refuse(name, "is a link, which zip archives of models may not hold")
        if info.flag_bits & _ENCRYPTED:
            guard.refuse(name, "is encrypted")
        return ArchiveMember(name, normalise(info.filename), _kind(info), info.file_size, bool(mode & 0o111))

    def _is_stored(self, info: zipfile.ZipInfo) -> bool:
        return info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size

    def _is_plain(self, member: ArchiveMember) -> bool:
        """Whether its bytes can be used as they are. Without a digest in the manifest, zipfile must check the CRC."""
        has_digest = hasattr(self, "manifest") and member.path in self.manifest.files
        return has_digest and self._is_stored(self._infos[member.name])

    def _data_offset(self, info: zipfile.ZipInfo) -> int:
        """The offset of a stored member's bytes: after the local header, whose lengths may differ from the
        directory's."""
        self._file.seek(info.header_offset)
        magic, name, extra = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        offset = info.header_offset + _LOCAL_HEADER.size + int(name) + int(extra)
        if magic != b"PK\x03\x04" or offset + info.file_size > self.path.stat().st_size:
            raise zipfile.BadZipFile(f"the local header of '{info.filename}' does not fit")
        return offset


def _kind(info: zipfile.ZipInfo) -> MemberKind:
    if info.is_dir():
        return MemberKind.FOLDER
    file_type = stat.S_IFMT(info.external_attr >> 16)
    return MemberKind.FILE if file_type in (0, stat.S_IFREG) else MemberKind.SPECIAL
