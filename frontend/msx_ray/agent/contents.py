"""The folders on this node that ranks need."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_archiver.room import is_full, why
from msx_archiver.sizes import MIB
from msx_ray.agent.fetching import TELL_AGAIN, Fetching
from msx_ray.agent.node_cache import CACHE, NodeCache, node_cache, throttled
from msx_ray.agent_messages import NodeContent
from msx_ray.listing import COMPILED, Listing, digest_of, encode, list_folder

SHARED = "MSX_NODE_SHARED"
LOOK_AGAIN = 0.2
"""Seconds after which one that waits for another rank of the node looks again."""
SLACK = 16 * MIB
"""Bytes that a content needs beside its files: folders, and ends of blocks."""

Connect = Callable[[asyncio.Protocol], Awaitable[asyncio.Protocol]]


async def folder_of(content: NodeContent, connect: Connect, progress: Callable[[str], None]) -> str:
    """The folder with this content on this node; `connect` connects a protocol with the server's stream for contents.

    Raises OSError with a sentence.
    """

    async def dial() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader = asyncio.StreamReader()
        protocol = await connect(asyncio.StreamReaderProtocol(reader))
        transport = protocol._transport  # type: ignore[attr-defined]
        return reader, asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())

    return str(await fetch(content, dial, node_cache(), progress))


async def fetch(
    content: NodeContent,
    dial: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]],
    root: Path,
    progress: Callable[[str], None],
) -> Path:
    """The folder with the content in the cache below `root`; a shared volume's own, where it is the same there."""
    cache = await asyncio.to_thread(_cache, root)
    if content.kind == COMPILED:
        return await asyncio.to_thread(cache.hold_compiled, content.digest)
    if await asyncio.to_thread(_is_here, content):
        return Path(content.path)
    name, waits = f"{content.kind}-{content.digest}", throttled(progress, TELL_AGAIN)
    while True:
        if (found := await asyncio.to_thread(cache.find, name)) is not None:
            return found
        with cache.alone(name) as alone:
            if alone:
                found = await asyncio.to_thread(cache.find, name)
                return found or await _fetch(content, name, cache, Fetching(content, dial, throttled(progress)))
        waits(f"another rank of this node fetches the {content.kind}")
        await asyncio.sleep(LOOK_AGAIN)


async def _fetch(content: NodeContent, name: str, cache: NodeCache, fetching: Fetching) -> Path:
    try:
        listing = await fetching.listing()
        partial = await asyncio.to_thread(_prepared, cache, name, listing)
        whole = await fetching.files(listing, partial)
        return await asyncio.to_thread(cache.keep, name, whole)
    except ArchiveError as error:
        raise OSError(str(error).rstrip(".")) from error
    except OSError as error:
        if is_full(error):
            reason = why(error, cache.folder)
            raise OSError(f"{cache.folder} cannot be written: {reason}: make room, or set {CACHE}") from error
        raise
    finally:
        fetching.close()


def _prepared(cache: NodeCache, name: str, listing: Listing) -> Path:
    """Where it is put together. Raises OSError where there is no room for what is missing."""
    partial = cache.partial(name)
    have = sum(file.stat().st_size for file in partial.rglob("*") if file.is_file())
    cache.check_room(name, max(0, listing.total - have) + SLACK)
    return partial


def _is_here(content: NodeContent) -> bool:
    """Whether the server's folder is on this node, too: a shared volume, or the server's own machine."""
    if os.environ.get(SHARED, "true").lower() == "false":
        return False
    try:
        return digest_of(encode(list_folder(Path(content.path), content.kind))) == content.digest
    except (OSError, ArchiveError):
        return False


@lru_cache(maxsize=8)
def _cache(root: Path) -> NodeCache:
    return NodeCache(root)
