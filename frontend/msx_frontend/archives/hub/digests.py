"""Digests of files, in the forms in which hubs say them."""

import hashlib
from typing import Any, Protocol

SHA256, GIT, MD5, MD5_PARTS = "sha256", "git", "md5", "md5-parts"


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def matches(self) -> bool: ...


def digest_of(said: str, size: int) -> Digest:
    """Compares what comes with `said`: `sha256:HEX`, `git:HEX` (of a blob), `md5:HEX`, `md5-parts:HEX-COUNT:SIZE` (of
    an object of S3 that was uploaded in parts of SIZE bytes), or "" for a file without one."""
    kind, _, rest = said.partition(":")
    if kind == MD5_PARTS:
        expected, _, part = rest.partition(":")
        return _PartsDigest(expected, int(part))
    if kind not in (SHA256, GIT, MD5):
        return _Whole(hashlib.sha256(), "")
    digest = (
        hashlib.sha256() if kind == SHA256 else hashlib.new("sha1" if kind == GIT else "md5", usedforsecurity=False)
    )
    if kind == GIT:
        digest.update(b"blob %d\0" % size)
    return _Whole(digest, rest)


class _Whole:
    def __init__(self, digest: Any, expected: str) -> None:
        self._digest, self._expected = digest, expected

    def update(self, data: bytes, /) -> None:
        self._digest.update(data)

    def matches(self) -> bool:
        return not self._expected or str(self._digest.hexdigest()) == self._expected


class _PartsDigest:
    """The MD5 of the MD5s of all parts, and their number."""

    def __init__(self, expected: str, part: int) -> None:
        self._expected, self._part = expected, part
        self._parts: list[bytes] = []
        self._now, self._left = hashlib.md5(usedforsecurity=False), part

    def update(self, data: bytes, /) -> None:
        view = memoryview(data)
        while view:
            here = view[: self._left]
            self._now.update(here)
            self._left -= len(here)
            view = view[len(here) :]
            if not self._left:
                self._end_part()

    def _end_part(self) -> None:
        self._parts.append(self._now.digest())
        self._now, self._left = hashlib.md5(usedforsecurity=False), self._part

    def matches(self) -> bool:
        if self._left < self._part:
            self._end_part()
        whole = hashlib.md5(b"".join(self._parts), usedforsecurity=False).hexdigest()
        return f"{whole}-{len(self._parts)}" == self._expected
