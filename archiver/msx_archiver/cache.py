"""Unpacked archives by the digest of their content: each is unpacked once, and completely or not at all."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, cast

from msx_archiver import record
from msx_archiver.archive import Archive
from msx_archiver.copying import Progress, ignore
from msx_archiver.digests import DigestFile, stamp
from msx_archiver.errors import ArchiveError
from msx_archiver.extract import check_room, extract
from msx_archiver.folder_archive import FolderArchive
from msx_archiver.guard import ArchiveLimits
from msx_archiver.identity import content_digest, folder_digest
from msx_archiver.reader import open_as
from msx_archiver.room import why
from msx_archiver.schema import MODEL, WORKFLOW, ArchiveSchema, M
from msx_archiver.uses import Uses
from msx_core.manifest import Manifest
from msx_core.workflow_manifest import WorkflowManifest

_OURS = re.compile(r"(?:\.lock-|\.tmp-|\.record-)?([0-9a-f]{64})(?:-.*)?$")

_MOST_NAMED = 3


@dataclass(frozen=True)
class UnpackedArchive(Generic[M]):
    """An archive's files at `path`. `digest` is 64 hex digits; `warnings` are sentences for the log."""

    path: Path
    digest: str
    manifest: M
    warnings: list[str] = field(default_factory=list)


UnpackedModel = UnpackedArchive[Manifest]
UnpackedWorkflow = UnpackedArchive[WorkflowManifest]


class ArchiveCache:
    """Unpacks archives below `root`; safe for several threads and processes on one root.

    An archive is unpacked aside, into `.tmp-<digest>-…`, and renamed to `<digest>` once every file is there
    and is what the manifest says. `.lock-<digest>` is held meanwhile, so that no other process unpacks it and
    `clean` can tell what a dead process left from what a living one is writing. `.record-<digest>` has the sizes, times
    and inodes of its files, by which one is known that was changed later: then it is unpacked again, with a warning.
    """

    def __init__(
        self,
        root: Path,
        limits: ArchiveLimits | None = None,
        *,
        digests: Path | None = None,
        uses: Uses | None = None,
        require: Callable[[Path, str], None] | None = None,
    ) -> None:
        """`digests` is the file of known digests, if it does not lie in `root`. With `uses` other servers use `root`,
        too: each holds what it has unpacked, and nothing is removed that another one holds. `require` is asked before
        an archive of a digest is unpacked or found unpacked ("" for a folder), and raises ArchiveError to refuse it."""
        self.root = root
        self._limits = limits or ArchiveLimits()
        self._require = require or (lambda archive, digest: None)
        self._uses = uses
        root.mkdir(parents=True, exist_ok=True)
        self._digests = DigestFile(digests or root / "digests.json")

    def unpack(self, archive: Path, progress: Progress = ignore) -> UnpackedModel:
        """The model of `archive`, unpacked if necessary. A folder is used in place.

        Blocks; reads the archive once, or twice if its manifest has no digests. Raises ArchiveError or
        HostileArchiveError; then nothing is left behind.
        """
        return self._unpacked(MODEL, archive, progress)

    def unpack_workflow(self, archive: Path, progress: Progress = ignore) -> UnpackedWorkflow:
        """The same for a workflow archive."""
        return self._unpacked(WORKFLOW, archive, progress)

    def is_intact(self, digest: str) -> bool:
        """Whether the files that were unpacked for `digest` are unchanged. Blocks; raises OSError.

        Only files with another size, time or inode are read.
        """
        noted = record.read(self._record(digest))
        return noted is not None and (self.root / digest).is_dir() and not self._changed(digest, noted)

    def clean(self, in_use: Collection[str]) -> None:
        """Removes contents that are neither in `in_use` (digests) nor being unpacked by another process, and unused
        locks."""
        self._digests.clean()
        found = {match[1] for entry in self.root.iterdir() if (match := _OURS.match(entry.name))}
        for digest in found if os.access(self.root, os.W_OK) else ():
            lock = self.root / f".lock-{digest}"
            with _try_lock(lock) as locked:
                if locked:
                    self._clean(digest, in_use=digest in in_use)
                    lock.unlink(missing_ok=True)

    def _clean(self, digest: str, *, in_use: bool) -> None:
        if not in_use:
            self.release(digest)
        with self.unused(digest) as unused:
            self._remove(digest, keep=in_use or not unused)

    def remove(self, digest: str) -> None:
        """Removes a content that is not used any more; a folder that is used in place is left alone, and what another
        server uses, too."""
        self.release(digest)
        with self._locked(digest), self.unused(digest) as unused:
            if unused:
                self._remove(digest, keep=False)

    def release(self, digest: str) -> None:
        """This server does not use the content any more; another one may remove it."""
        if self._uses is not None:
            self._uses.release(digest)

    @contextmanager
    def unused(self, digest: str) -> Iterator[bool]:
        """Whether no server uses the content, of those that share the folder; then none does before the end of the
        block."""
        if self._uses is None:
            yield True
            return
        with self._uses.nobody(digest) as nobody:
            yield nobody

    def _remove(self, digest: str, *, keep: bool) -> None:
        if not keep:
            for noted in self.root.glob(f".record-{digest}*"):
                noted.unlink(missing_ok=True)
            if (self.root / digest).exists():
                self._aside(digest)
        for folder in self.root.glob(f".tmp-{digest}-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _unpacked(self, schema: ArchiveSchema[M], archive: Path, progress: Progress) -> UnpackedArchive[M]:
        with _disk_errors_named(archive, self.root):
            if archive.is_dir():
                self._require(archive, "")
                return _in_place(schema, archive)
            self.root.mkdir(parents=True, exist_ok=True)  # the folder may have been emptied while the server runs
            digest = self._digests.recall(archive) if archive.is_file() else None
            if digest:
                self._require(archive, digest)
                with self._held(digest):
                    if cached := self._cached(schema, digest):
                        return cached
            return self._unpack(schema, archive, progress)

    @contextmanager
    def _held(self, digest: str) -> Iterator[None]:
        """No other server removes the content from here on, unless it is not there at the end of the block."""
        first = self._uses is not None and self._uses.hold(digest)
        try:
            yield
        finally:
            if first and not (self.root / digest).is_dir():
                self.release(digest)

    def _cached(self, schema: ArchiveSchema[M], digest: str) -> UnpackedArchive[M] | None:
        """The unpacked content, unless files of it were changed or lost by a power failure."""
        folder = self.root / digest
        if not folder.is_dir():
            return None
        try:
            with open_as(schema, folder) as model:
                files, found = model.manifest.files, UnpackedArchive(folder, digest, model.manifest, model.warnings)
        except ArchiveError:
            return None
        noted = record.read(self._record(digest)) or record.expected(files)
        return None if not noted or self._changed(digest, noted) else found

    def _changed(self, digest: str, noted: record.Record) -> list[str]:
        changed, now = record.changed(self.root / digest, noted)
        if not changed and now != noted:
            record.write(self._record(digest), now)
        return changed

    def _record(self, digest: str) -> Path:
        return self.root / f".record-{digest}"

    def _aside(self, digest: str) -> Path:
        """Renames the folder first: a partly removed one must not be taken for complete."""
        aside = Path(tempfile.mkdtemp(prefix=f".tmp-{digest}-", dir=self.root))
        (self.root / digest).rename(aside / "old")
        return aside

    def _unpack(self, schema: ArchiveSchema[M], path: Path, progress: Progress) -> UnpackedArchive[M]:
        with open_as(schema, path, self._limits) as archive:
            digest = self._digests.of(path, archive.stamp, partial(content_digest, archive))
            self._require(path, digest)
            with self._held(digest):
                warnings = [*archive.warnings]
                if self._uses is None or self._cached(schema, digest) is None:
                    warnings += self._write_once(schema, archive, digest, progress)
            return UnpackedArchive(self.root / digest, digest, archive.manifest, warnings)

    def _write_once(self, schema: ArchiveSchema[M], archive: Archive[M], digest: str, progress: Progress) -> list[str]:
        """Returns warnings."""
        with self._locked(digest):
            if self._cached(schema, digest) is not None:
                return []
            warnings = self._why_again(archive, digest)
            self._write(archive, digest, progress)
            return warnings

    def _why_again(self, archive: Archive[M], digest: str) -> list[str]:
        """A warning that an unpacked content cannot be used any more, with the reason."""
        known = record.read(self._record(digest))
        if known is None and not (self.root / digest).is_dir():
            return []
        noted = known or record.expected(archive.manifest.files)
        changed = record.changed(self.root / digest, noted)[0]
        named = ", ".join(f"'{path}'" for path in changed[:_MOST_NAMED]) + (", …" if len(changed) > _MOST_NAMED else "")
        what = f"{named} was changed or removed" if changed else "it is unknown whether something was changed"
        return [f"{what} in {self.root / digest} since it was unpacked: it is unpacked again"]

    def _write(self, archive: Archive[M], digest: str, progress: Progress) -> None:
        check_room(archive, self.root)
        aside = Path(tempfile.mkdtemp(prefix=f".tmp-{digest}-", dir=self.root))
        try:
            extract(archive, aside, progress)
            if stamp(archive.path) != archive.stamp:
                raise ArchiveError(f"{archive.path} changed while it was being unpacked; try again.")
            noted = record.take(aside, archive.manifest.files)
            self._record(digest).unlink(missing_ok=True)
            if (self.root / digest).exists():
                shutil.rmtree(self._aside(digest), ignore_errors=True)
            aside.rename(self.root / digest)
            record.write(self._record(digest), noted)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    @contextmanager
    def _locked(self, digest: str) -> Iterator[None]:
        path = self.root / f".lock-{digest}"
        while True:
            with path.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if _is_named(path, lock.fileno()):
                    try:
                        yield
                    finally:
                        if not (self.root / digest).exists():
                            path.unlink(missing_ok=True)
                    return


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield _is_named(path, lock.fileno())


def _is_named(path: Path, fd: int) -> bool:
    """The process that held the lock before may have removed the file meanwhile."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def _in_place(schema: ArchiveSchema[M], path: Path) -> UnpackedArchive[M]:
    with open_as(schema, path) as opened:
        root = cast(FolderArchive[M], opened).root
        return UnpackedArchive(root, folder_digest(root), opened.manifest, opened.warnings)


@contextmanager
def _disk_errors_named(archive: Path, root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArchiveError(f"{archive} cannot be unpacked into {root}: {why(error, root)}.") from error
