"""The `url` of a registration: the archive that it names, and whether `allowed_urls` allows it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

from msx_frontend.archives.schemes import HF, HUBS, MODELSCOPE
from msx_frontend.management_errors import ArchiveNotFound, DownloadFailed

REMOTE = ("http", "https", "file", *HUBS)

MOST_SHOWN = 1000
"""Characters of the URL of a hub's model in a message."""


@dataclass(frozen=True)
class ArchiveUrl:
    """`parts` are None for a name in the model store, or a path: only what has a scheme of `REMOTE` is fetched."""

    text: str
    parts: SplitResult | None

    @classmethod
    def parse(cls, text: str) -> ArchiveUrl:
        """Raises ArchiveNotFound for what cannot be the URL of an archive, with TorchServe's texts; DownloadFailed."""
        if not text:
            raise ArchiveNotFound("empty url")
        url = cls.split(text)
        if ".." in text:
            raise ArchiveNotFound(f"Relative path is not allowed in url: {url.shown}")
        return url

    @classmethod
    def split(cls, text: str) -> ArchiveUrl:
        """Any text, also the URL to which a server redirects. Raises DownloadFailed for one that cannot be split."""
        if not (text.partition(":")[0].lower() in REMOTE and "://" in text):
            return cls(text, None)
        try:
            return cls(text, urlsplit(text))
        except ValueError as error:
            raise DownloadFailed(text.partition("?")[0], str(error)) from None

    @property
    def is_remote(self) -> bool:
        """Whether it is downloaded. A URL with another scheme counts as a name in the model store, where it does not
        exist."""
        return self.parts is not None

    @property
    def is_hub(self) -> bool:
        """Whether it names a model of a hub or an object store."""
        return self.parts is not None and self.parts.scheme in HUBS

    @property
    def file_name(self) -> str:
        """The name of the file in the model store: TorchServe uses the last part of the path only.

        Of a hub's model its name without the revision.
        """
        if self.parts is None:
            return Path(self.text).name
        if self.parts.scheme in (HF, MODELSCOPE):
            return PurePosixPath(f"{self.parts.netloc}{self.parts.path}".partition("@")[0]).name
        return PurePosixPath(self.parts.path).name

    @property
    def local_path(self) -> Path | None:
        """The file that a `file://` URL, or a path, names on this machine; None for other schemes.

        Raises DownloadFailed for `file://` of another machine.
        """
        if self.parts is None:
            return Path(self.text)
        if self.parts.scheme != "file":
            return None
        if self.parts.netloc not in ("", "localhost"):
            raise DownloadFailed(self.shown, f"file:// means this machine, not {self.parts.netloc}")
        return Path(unquote(self.parts.path))

    @property
    def host(self) -> str:
        return "" if self.parts is None else self.parts.hostname or ""

    @property
    def shown(self) -> str:
        """For messages: without a password, and without the query, which may be a signature."""
        if self.parts is None:
            return self.text
        host = self.parts.netloc.rpartition("@")[2]
        netloc = f"***@{host}" if "@" in self.parts.netloc else host
        if self.is_hub:
            return self.text[:MOST_SHOWN]
        return self.parts._replace(netloc=netloc, query="", fragment="").geturl()

    def check_allowed(self, allowed: Iterable[re.Pattern[str]]) -> None:
        """Raises ArchiveNotFound unless one of the patterns matches the whole URL, in upper or lower case."""
        if not any(re.fullmatch(pattern.pattern, self.text, re.IGNORECASE) for pattern in allowed):
            raise ArchiveNotFound(f"Given URL {self.shown} does not match any allowed URL(s)")
