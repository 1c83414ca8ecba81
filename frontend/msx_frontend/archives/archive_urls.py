"""The `url` of a registration: what it names, and whether it may be asked (`allowed_urls`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

from msx_frontend.errors import ArchiveNotFound, DownloadFailed

REMOTE = ("http", "https", "file")


def check_url(url: str) -> None:
    """Raises ArchiveNotFound for what no archive can be called, with TorchServe's texts."""
    if not url:
        raise ArchiveNotFound("empty url")
    if ".." in url:
        raise ArchiveNotFound(f"Relative path is not allowed in url: {shown(url)}")


def is_remote(url: str) -> bool:
    """Whether it is fetched: any other scheme is a name in the model store, which it does not have."""
    return url.partition(":")[0].lower() in REMOTE and "://" in url


def file_name(url: str) -> str:
    """The file of the model store that `url` means: TorchServe looks at the last part of its path only."""
    return PurePosixPath(_split(url).path).name if is_remote(url) else Path(url).name


def local_path(url: str) -> Path | None:
    """The file that a `file://` URL names, on this machine; None for other schemes."""
    parts = _split(url)
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost"):
        raise DownloadFailed(shown(url), f"file:// means this machine, not {parts.netloc}")
    return Path(unquote(parts.path))


def check_allowed(url: str, allowed: Iterable[re.Pattern[str]]) -> None:
    """Raises ArchiveNotFound unless one of them matches all of it, whatever the case."""
    if not any(re.fullmatch(pattern.pattern, url, re.IGNORECASE) for pattern in allowed):
        raise ArchiveNotFound(f"Given URL {shown(url)} does not match any allowed URL(s)")


def shown(url: str) -> str:
    """For messages: without a password, and without the query, which may be a signature."""
    if not is_remote(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0]
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"***@{host}" if "@" in parts.netloc else host, query="", fragment="").geturl()


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise DownloadFailed(shown(url), str(error)) from None
