"""Interface of a hub: a listing of files, and their bytes from any offset on."""

import importlib
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msx_frontend.shown_url import without_secrets

CHUNK = 1 << 16
"""Bytes that are read at once, and that a break may lose."""
SILENCE = 60.0
"""Seconds without a byte."""
MOST_FILES = 10_000
"""Most files of a model: a listing with more is not one."""
_QUERY = re.compile(r"\?[^\s'\")]+")
EXTRA = "pip install 'msx-serve[hub]'"


class HubError(Exception):
    """A reason in words: why the model cannot be fetched. Another attempt would not help."""


class BrokenError(Exception):
    """The connection broke: another attempt may go on from there."""


@dataclass(frozen=True)
class HubFile:
    """`path`: in the model's folder; `digest`: see `digests`, or "" where the hub has none; `key`: the hub's name."""

    path: str
    size: int
    digest: str = ""
    key: str = ""


@dataclass(frozen=True)
class HubListing:
    """`revision`: the commit, or "" for a hub that does not say it."""

    files: Sequence[HubFile]
    revision: str = ""


class Remote(Protocol):
    """One model of a hub. Both methods block, and raise HubError or BrokenError."""

    def list_files(self) -> HubListing: ...

    def detail(self, file: HubFile) -> HubFile:
        """The file with its digest, for a hub whose listing does not have it."""
        ...

    def read(self, file: HubFile, start: int) -> Generator[bytes, None, None]:
        """Its bytes from `start` on; the iterator is closed when no more are wanted."""
        ...


def library(name: str, what: str) -> Any:
    """The module `name`, which fetches `what`. Raises HubError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        missing = f"{package}, which is not installed" if error.name == name else f"{package}, and {error}"
        raise HubError(f"{what} needs {missing}: {EXTRA}") from None


def too_many() -> HubError:
    return HubError(f"it has more than {MOST_FILES:,} files, which is not one model")


def skipped(chunks: Iterator[bytes], left: int) -> Iterator[bytes]:
    """The chunks without the first `left` bytes, of a server that does not know ranges."""
    for chunk in chunks:
        if left < len(chunk):
            yield chunk[left:]
        left = max(0, left - len(chunk))


def said(error: Exception) -> str:
    """One line of an error of a library, without passwords and the queries of URLs, which may be signatures."""
    lines = _QUERY.sub("?…", without_secrets(str(error))).splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
