"""A model of a hub or an object store, as a URL names it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from msx_frontend.archives.schemes import HF, MODELSCOPE, OBS, S3
from msx_frontend.archives.suffixes import ARCHIVE_SUFFIXES
from msx_frontend.shown_url import shown_url

FORMS = {
    HF: "hf://org/name, or hf://org/name@revision",
    MODELSCOPE: "modelscope://org/name, or modelscope://org/name@revision",
    S3: "s3://bucket/prefix",
    OBS: "obs://bucket/prefix",
}
_REPO = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}")
_ALONE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,254}")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CONTENT = re.compile(r"#sha256=([0-9a-f]{64})$")
_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_MOST_BYTES = 1024
"""Longest key of S3."""


@dataclass(frozen=True)
class HubUrl:
    """`place`: the repository, or the bucket; `revision`: a branch, tag or commit, or "" for the hub's default;
    `prefix`: in the bucket, without slashes at its ends; `content`: the only one that is meant, or ""."""

    scheme: str
    place: str
    revision: str = ""
    prefix: str = ""
    content: str = ""

    @classmethod
    def parse(cls, text: str) -> HubUrl:
        """Raises ValueError with a sentence."""
        named = _CONTENT.search(text)
        scheme, _, rest = text[: named.start() if named else None].partition("://")
        scheme = scheme.lower()
        found = _of_bucket(scheme, rest) if scheme in (S3, OBS) else _of_repository(scheme, rest)
        if found is None:
            raise ValueError(f"{shown_url(text)[:200]} is not a URL of the form {FORMS[scheme]}")
        return replace(found, content=named[1]) if named else found

    @property
    def name(self) -> str:
        """Name of the model's folder, or of the archive."""
        last = (self.prefix or self.place).rpartition("/")[2]
        return _NOT_IN_FILE_NAMES.sub("-", last).strip("-.") or "model"

    @property
    def folder(self) -> str:
        """Folder name of the contents: readable, and never the same for two models."""
        whole = f"{self.place}/{self.prefix}" if self.prefix else self.place
        readable = _NOT_IN_FILE_NAMES.sub("-", whole.replace("/", "--")).strip("-.")[:100]
        return f"{self.scheme}--{readable}--{hashlib.sha256(whole.encode()).hexdigest()[:8]}"

    @property
    def is_pinned(self) -> bool:
        """Its revision is the hash of a commit, or its content is named: what it names does not change."""
        return bool(self.content) or _COMMIT.fullmatch(self.revision) is not None

    @property
    def is_archive(self) -> bool:
        """It names one archive, which may be signed."""
        return self.prefix.endswith((*ARCHIVE_SUFFIXES, ".war"))

    def at(self, commit: str, content: str) -> str:
        """The URL of what this names now: by its commit, where the hub says it."""
        if commit:
            return f"{self.scheme}://{self.place}@{commit}"
        return f"{self._text}#sha256={content}"

    @property
    def _text(self) -> str:
        place = f"{self.place}/{self.prefix}" if self.prefix else self.place
        return f"{self.scheme}://{place}@{self.revision}" if self.revision else f"{self.scheme}://{place}"


def _of_repository(scheme: str, rest: str) -> HubUrl | None:
    place, at, revision = rest.partition("@")
    place = place.rstrip("/")
    known = _REPO.fullmatch(place) or (scheme == HF and _ALONE.fullmatch(place))
    if not known or ".." in rest or (at and not _REVISION.fullmatch(revision)):
        return None
    return HubUrl(scheme, place, revision)


def _of_bucket(scheme: str, rest: str) -> HubUrl | None:
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.strip("/")
    parts = prefix.split("/")
    bad = not prefix or "" in parts or "." in parts or ".." in rest or len(prefix.encode()) > _MOST_BYTES
    if bad or not prefix.isprintable() or not _BUCKET.fullmatch(bucket):
        return None
    return HubUrl(scheme, bucket, prefix=prefix)
