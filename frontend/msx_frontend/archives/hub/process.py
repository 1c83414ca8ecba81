"""The process that fetches one model: the hubs' libraries are large, block, and are not loaded into the server.

It reads an order from its standard input, writes reports in lines to its standard output, and ends with its input.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msx_archiver.room import why
from msx_frontend.archives.hub.chosen import chosen
from msx_frontend.archives.hub.content import LOCK, PASSABLE, HubContent, record
from msx_frontend.archives.hub.hub_download import HubDownload, patiently
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.hub.remote import BrokenError, HubError, HubFile, HubListing, Remote
from msx_frontend.archives.schemes import HF, MODELSCOPE

if TYPE_CHECKING:
    from msx_frontend.archives.hub.huggingface import HuggingFace
    from msx_frontend.archives.hub.modelscope import ModelScope

TELL = 0.2
"""Seconds between two reports of how far it is."""
MEMORY = 4 << 30
"""Bytes that this process may have: a listing may be hostile."""
TOO_LARGE = f"its listing does not fit into {MEMORY >> 30} GiB of memory"


def main() -> None:
    os.umask(0o022)
    limit_memory()
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    root = Path(order["root"])
    try:
        url = HubUrl.parse(order["url"])
        _tell(**_fetched(url, remote_of(url, order["allowed"], offline=order["offline"]), root, order["most"]))
    except (HubError, BrokenError) as error:
        _tell(error=str(error))
    except OSError as error:
        _tell(error=f"{error.filename or root}: {why(error, root)}")
    except MemoryError:
        _tell(error=TOO_LARGE)


def remote_of(url: HubUrl, allowed: Sequence[str], *, offline: bool) -> Remote:
    """The model, for this process, which does nothing else: it is kept from addresses to which hubs may not redirect.
    `allowed`: the patterns of `allowed_urls`. Raises HubError where the library is not installed."""
    if offline:
        from msx_frontend.archives.hub.huggingface_cache import HuggingFaceCache

        return HuggingFaceCache(url)
    if url.scheme == HF:
        from msx_frontend.archives.hub.huggingface import HuggingFace

        return _watched(HuggingFace(url, allowed))
    if url.scheme == MODELSCOPE:
        from msx_frontend.archives.hub.modelscope import ModelScope

        return _watched(ModelScope(url, allowed))
    from msx_frontend.archives.hub.object_store import ObjectStore

    return ObjectStore(url)


def _watched(remote: HuggingFace | ModelScope) -> Remote:
    remote.redirects.watch()
    return remote


def _fetched(url: HubUrl, remote: Remote, root: Path, most: int) -> dict[str, Any]:
    listing = cast(HubListing, patiently(remote.list_files))
    if not listing.files:
        raise HubError("it has no files")
    files = chosen(listing.files, lambda file: read_small(remote, file), archive=url.is_archive)
    if url.scheme in (HF, MODELSCOPE) and (unknown := next((file.path for file in files if not file.digest), None)):
        raise HubError(f"the hub does not say the digest of {unknown}")
    content = HubContent.of(root, url, files)
    if url.content not in ("", content.id):
        raise HubError(f"it has another content now: #sha256={content.id}")
    content.home.mkdir(PASSABLE, parents=True, exist_ok=True)
    with _alone(content):
        if not content.is_complete():
            fetching = HubDownload(remote, content)
            threading.Thread(target=_report, args=(fetching, content.size), daemon=True).start()
            fetching.fetch(most)
        record(content, url, listing.revision)
    return {"id": content.id, "revision": listing.revision}


def read_small(remote: Remote, file: HubFile) -> bytes:
    def read() -> bytes:
        data = b""
        for chunk in remote.read(file, 0):
            data += chunk
            if len(data) > file.size:
                break
        return data

    return cast(bytes, patiently(read))


@contextmanager
def _alone(content: HubContent) -> Iterator[None]:
    """Other processes that want the model wait, and find it then."""
    with (content.home / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _tell(waits=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _report(fetching: HubDownload, size: int) -> None:
    """Also of a hub that sends nothing for a while: what has come until then."""
    told = -1
    while True:
        if (done := fetching.done) != told:
            told = done
            _tell(done=done, size=size)
        time.sleep(TELL)


def _tell(**report: Any) -> None:
    """One call, because two threads tell."""
    os.write(sys.stdout.fileno(), json.dumps(report).encode() + b"\n")


def limit_memory() -> None:
    """Limit the memory of this process: with more, it raises MemoryError."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


if __name__ == "__main__":
    main()
