"""Contents fetched from hubs: a folder each below the cache, whose name is the digest of its listing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.hub.remote import HubFile
from msx_frontend.whole_file import write_whole

LISTING = "listing.json"
PART = ".part"
LOCK = ".lock"
"""File beside the contents of a model: whoever has it is the only one that changes them."""
_REFS = "refs.json"
PASSABLE = 0o711
"""Mode of folders of contents: a worker that runs as another user finds its own model, and cannot list others."""
_FIRST_DAY = 946_684_800
"""The year 2000, in seconds."""
_DAYS = 3600 * 24 * 3650


@dataclass(frozen=True)
class HubContent:
    """`home`: of all contents of the model; `name`: of the model's folder."""

    home: Path
    id: str
    name: str
    files: Sequence[HubFile] = ()

    @classmethod
    def of(cls, root: Path, url: HubUrl, files: Sequence[HubFile]) -> HubContent:
        said = repr(sorted((file.path, file.size, file.digest) for file in files))
        return cls(root / url.folder, hashlib.sha256(said.encode()).hexdigest(), url.name, files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def folder(self) -> Path:
        """Complete, or not there."""
        return self.home / self.id

    @property
    def model(self) -> Path:
        return self.folder / self.name

    @property
    def part(self) -> Path:
        return self.home / f"{self.id}{PART}" / self.name

    def is_complete(self) -> bool:
        return (self.folder / LISTING).is_file()

    def date(self, path: Path, file: HubFile) -> None:
        """A time that is made of its digest: models' folders are told apart by sizes and times, and this content is the
        same content on every machine."""
        seed = hashlib.sha256(f"{file.path} {file.size} {file.digest}".encode()).digest()
        seconds = _FIRST_DAY + int.from_bytes(seed[:8], "big") % _DAYS
        nanoseconds = int.from_bytes(seed[8:12], "big") % 1_000_000_000
        os.utime(path, ns=((at := seconds * 1_000_000_000 + nanoseconds), at))

    def complete(self) -> None:
        """Delete files of another listing from `part`, then move it to its place at once."""
        wanted = {file.path for file in self.files}
        for path in self.part.rglob("*"):
            if path.is_file() and path.relative_to(self.part).as_posix() not in wanted:
                path.unlink()
        whole = self.part.parent
        said = {"files": [[file.path, file.size, file.digest] for file in self.files]}
        write_whole(whole / LISTING, json.dumps(said).encode())
        shutil.rmtree(self.folder, ignore_errors=True)
        whole.rename(self.folder)

    def used(self) -> None:
        """Now, for the rule of what is removed first."""
        with suppress(OSError):  # a cache that is read-only
            os.utime(self.folder / LISTING)


def recorded(root: Path, url: HubUrl) -> tuple[HubContent, str] | None:
    """The complete content of that URL, which was fetched last, and the commit; None if there is none."""
    home = root / url.folder
    id, revision = (url.content, "") if url.content else _refs(home).get(url.revision, ("", ""))
    content = HubContent(home, id, url.name)
    return (content, revision) if id and content.is_complete() else None


def record(content: HubContent, url: HubUrl, revision: str) -> None:
    """Record it by its revision, and by the commit that this is now."""
    names = {url.revision, revision} - ({""} if url.revision else set())
    refs = {**_refs(content.home), **dict.fromkeys(names, (content.id, revision))}
    kept = {name: at for name, at in refs.items() if (content.home / at[0]).is_dir()}
    write_whole(content.home / _REFS, json.dumps(kept).encode(), 0o600)


def _refs(home: Path) -> dict[str, tuple[str, str]]:
    try:
        found = json.loads((home / _REFS).read_bytes())
        return {str(name): (str(id), str(revision)) for name, (id, revision) in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
