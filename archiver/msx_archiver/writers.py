"""Writes a model's files in one of the archive formats; each file is read once."""

import gzip
import io
import stat
import struct
import tarfile
import time
import zipfile
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from msx_archiver.copying import HashingSource, Progress, copy
from msx_archiver.sizes import MIB
from msx_core.manifest import FileEntry

_TEXT = {
    ".c", ".cfg", ".cpp", ".csv", ".h", ".html", ".ini", ".jinja", ".json", ".jsonl", ".md", ".merges", ".proto", ".py",
    ".rst", ".sh", ".svg", ".toml", ".tsv", ".txt", ".vocab", ".xml", ".yaml", ".yml",
}  # fmt: skip
_PACKED = {
    ".bin", ".bz2", ".ckpt", ".gguf", ".gz", ".h5", ".jpeg", ".jpg", ".mindir", ".ms", ".npy", ".npz", ".om", ".onnx",
    ".pb", ".pdparams", ".png", ".pt", ".pth", ".safetensors", ".so", ".whl", ".xz", ".zip", ".zst",
}  # fmt: skip
_ZIP_EPOCH = 315532800
"""1980-01-01, the earliest time in a zip."""
# Weights hardly shrink at any level, and the higher ones are slower than any disk.
_GZIP_LEVEL = 1

_LARGE = 1 << 30
"""Bytes from which on headers have 64-bit sizes: below zipfile's own threshold."""
BLOCK = 4096
"""Bytes. File systems can share blocks between files that begin at a multiple of this in both."""
_ALIGNMENT = struct.Struct("<HHH")
_ALIGNMENT_ID = 0xD935
"""The extra field of Android's zipalign and apksigner: the alignment, and zeros up to it."""


def _header_size(path: str, *, is_large: bool) -> int:
    """The size of a member's local header, without our extra field."""
    return 30 + len(path.encode()) + (20 if is_large else 0)


def _alignment(offset: int) -> bytes:
    """The extra field that moves data from `offset` to a multiple of BLOCK."""
    padding = -(offset + _ALIGNMENT.size) % BLOCK
    return _ALIGNMENT.pack(_ALIGNMENT_ID, _ALIGNMENT.size - 4 + padding, BLOCK) + bytes(padding)


def is_stored(path: str, size: int) -> bool:
    """Whether deflating is a waste of time: weights, compressed files, and large files that are not text."""
    suffix = PurePosixPath(path).suffix.lower()
    return suffix in _PACKED or (size > MIB and suffix not in _TEXT)


class ArchiveWriter(ABC):
    """Makes one archive at `target`; `moment` (Unix seconds), if any, replaces every file's modification time."""

    def __init__(self, target: Path, moment: int | None, progress: Progress) -> None:
        self._target = target
        self._moment = moment
        self._progress = progress

    @abstractmethod
    def add(self, path: str, file: Path) -> FileEntry:
        """Adds a file; returns its size and digest."""

    @abstractmethod
    def add_bytes(self, path: str, data: bytes) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def _time(self, file: Path | None = None) -> int:
        if self._moment is not None:
            return self._moment
        return int(file.stat().st_mtime if file else time.time())


class ZipWriter(ArchiveWriter):
    def __init__(self, target: Path, moment: int | None, progress: Progress, *, store: bool = False) -> None:
        super().__init__(target, moment, progress)
        self._store = store
        self._file = target.open("x+b")
        self._zip = zipfile.ZipFile(self._file, "w", compression=zipfile.ZIP_DEFLATED)

    def add(self, path: str, file: Path) -> FileEntry:
        info = self._info(path, file.stat().st_size, self._time(file), mode(file))
        is_large = info.file_size > _LARGE
        if info.compress_type == zipfile.ZIP_STORED and info.file_size >= BLOCK:
            info.extra = _alignment(self._file.tell() + _header_size(path, is_large=is_large))
        with file.open("rb", buffering=0) as source, self._zip.open(info, "w", force_zip64=is_large) as sink:
            return copy(source, sink, self._progress)

    def add_bytes(self, path: str, data: bytes) -> None:
        self._zip.writestr(self._info(path, len(data), self._time(), 0o644), data)

    def close(self) -> None:
        with self._file:
            self._zip.close()

    def _info(self, path: str, size: int, seconds: int, permissions: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(path, time.gmtime(max(seconds, _ZIP_EPOCH))[:6])
        stored = self._store or is_stored(path, size)
        info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        info.create_system = 3
        info.external_attr = (stat.S_IFREG | permissions) << 16
        info.file_size = size
        return info


class TgzWriter(ArchiveWriter):
    """All files are below the model's name, as torch-model-archiver writes them."""

    def __init__(self, target: Path, moment: int | None, progress: Progress, *, root: str) -> None:
        super().__init__(target, moment, progress)
        self._root = root
        self._file = target.open("xb")
        self._gzip = gzip.GzipFile("", "wb", _GZIP_LEVEL, self._file, mtime=self._time())
        self._tar = tarfile.open(fileobj=self._gzip, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def add(self, path: str, file: Path) -> FileEntry:
        info = self._info(path, file.stat().st_size, self._time(file))
        info.mode = mode(file)
        with file.open("rb") as opened:
            source = HashingSource(opened, self._progress)
            self._tar.addfile(info, source)
        return source.entry

    def add_bytes(self, path: str, data: bytes) -> None:
        self._tar.addfile(self._info(path, len(data), self._time()), io.BytesIO(data))

    def close(self) -> None:
        with ExitStack() as layers:  # closes all, from the last to the first, even if one cannot be flushed
            for layer in (self._file, self._gzip, self._tar):
                layers.callback(layer.close)

    def _info(self, path: str, size: int, seconds: int) -> tarfile.TarInfo:
        info = tarfile.TarInfo(f"{self._root}/{path}")
        info.size, info.mtime = size, seconds
        return info


class FolderWriter(ArchiveWriter):
    def __init__(self, target: Path, moment: int | None, progress: Progress) -> None:
        super().__init__(target, moment, progress)
        target.mkdir()

    def add(self, path: str, file: Path) -> FileEntry:
        place = self._place(path)
        with file.open("rb", buffering=0) as source, place.open("xb") as sink:
            entry = copy(source, sink, self._progress)
        place.chmod(mode(file))
        return entry

    def add_bytes(self, path: str, data: bytes) -> None:
        self._place(path).write_bytes(data)

    def close(self) -> None:
        """Does nothing: no file is held open."""

    def _place(self, path: str) -> Path:
        place = self._target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


def mode(file: Path) -> int:
    """Permissions that do not depend on the packer's umask."""
    return 0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644


def open_writer(archive_format: str, target: Path, name: str, moment: int | None, progress: Progress) -> ArchiveWriter:
    if archive_format == "tgz":
        return TgzWriter(target, moment, progress, root=name)
    if archive_format == "no-archive":
        return FolderWriter(target, moment, progress)
    return ZipWriter(target, moment, progress, store=archive_format == "zip-store")
