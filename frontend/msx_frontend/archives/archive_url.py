"""The `url` of a registration: the archive that it names, and whether `allowed_urls` allows it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

from msx_frontend.archives.schemes import HF, HUBS, MODELSCOPE
from msx_frontend.management_errors import ArchiveNotFound, DownloadFailed
from msx_frontend.shown_url import shown_url

REMOTE = ("http", "https", "file", *HUBS)

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""`urlsplit` removes some of them, so that `.<tab>.` would become `..`."""


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
        url._check_relative()
        return url

    @classmethod
    def split(cls, text: str) -> ArchiveUrl:
        """Any text, also the URL to which a server redirects. Raises DownloadFailed for one that cannot be split."""
        if not (text.partition(":")[0].lower() in REMOTE and "://" in text):
            return cls(text, None)
        try:
            return cls(text, urlsplit(text))
        except ValueError:  # its text may have the password
            raise DownloadFailed(shown_url(text), "it is not a well-formed URL") from None

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
        """Text for messages, logs and answers: see `shown_url`."""
        return shown_url(self.text)

    def check_allowed(self, allowed: Iterable[re.Pattern[str]]) -> None:
        """Raises ArchiveNotFound unless one of the patterns matches the whole URL, in upper or lower case, both as it
        was sent and as whoever opens it will read it."""
        self._check_relative()
        forms = (self.text, self._opened)
        if any(_CONTROL.search(form) for form in forms):
            raise ArchiveNotFound(f"{self._not_allowed}: it has a control character, which no pattern allows.")
        if not any(all(re.fullmatch(one.pattern, form, re.IGNORECASE) for form in forms) for one in allowed):
            raise ArchiveNotFound(self._not_allowed)

    def _check_relative(self) -> None:
        """Refuse `..`, also percent-encoded once or twice, because proxies and servers decode once each. Raises
        ArchiveNotFound."""
        decoded = (once := unquote(self.text), unquote(once)) if self.is_remote else ()
        if any(".." in form for form in (self.text, *decoded)):
            raise ArchiveNotFound(f"Relative path is not allowed in url: {self.shown}")

    @property
    def _opened(self) -> str:
        """The URL decoded, without what is not asked for: a fragment, and the query of a file."""
        if self.parts is None or self.is_hub:
            return unquote(self.text)
        asked = self.parts._replace(fragment="", query="" if self.parts.scheme == "file" else self.parts.query)
        return unquote(asked.geturl())

    @property
    def _not_allowed(self) -> str:
        return f"Given URL {self.shown} does not match any allowed URL(s)"
