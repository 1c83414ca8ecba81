"""Models in the cache of huggingface_hub on this machine, for a server that must not ask the hub."""

from collections.abc import Generator, Iterator
from pathlib import Path

from msx_frontend.archives.hub.digests import GIT, SHA256
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.hub.remote import CHUNK, HubError, HubFile, HubListing, library, said

_KINDS = {64: SHA256, 40: GIT}
"""Digests by their length: a cached file is a link to one that is named by its digest."""


class HuggingFaceCache:
    """Where the library finds it (`HF_HOME`, `HF_HUB_CACHE`). It is read as a hub is: copied, and checked."""

    def __init__(self, url: HubUrl) -> None:
        self._url, self._hub = url, library("huggingface_hub", "hf://")

    def list_files(self) -> HubListing:
        try:
            revision = self._url.revision or None
            found = self._hub.snapshot_download(self._url.place, revision=revision, local_files_only=True)
        except Exception as error:
            raise HubError(f"Hugging Face's cache on this machine does not have it: {said(error)}") from None
        return HubListing(list(_files(Path(found))), Path(found).name)

    def detail(self, file: HubFile) -> HubFile:
        return file

    def read(self, file: HubFile, start: int) -> Generator[bytes, None, None]:
        with Path(file.key).open("rb") as cached:
            cached.seek(start)
            while data := cached.read(CHUNK):
                yield data


def _files(root: Path) -> Iterator[HubFile]:
    for path in sorted(root.rglob("*")):
        if path.is_file():
            blob = path.resolve()
            digest = f"{_KINDS[len(blob.name)]}:{blob.name}" if len(blob.name) in _KINDS else ""
            yield HubFile(path.relative_to(root).as_posix(), blob.stat().st_size, digest, str(blob))
