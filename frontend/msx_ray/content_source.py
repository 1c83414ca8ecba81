"""Answers what agents ask for: the listed files of the contents of one generation, and nothing else of the disk."""

import asyncio
import hashlib
import io
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_ray.agent_messages import NodeContent
from msx_ray.content_frames import (
    BLOCK,
    Answer,
    ContentStreamError,
    ReadDigest,
    ReadFile,
    ReadListing,
    Request,
    read_request,
    write_answer,
)
from msx_ray.listing import MAX_FILES, MAX_LISTING, Listing, digest_of, encode, list_folder

log = logging.getLogger("msx.cluster")

IDLE = 120.0
"""Seconds in which an agent asks for the next block, and takes it."""
ALIVE = 5.0
"""Seconds after which an agent that waits is told that the server is still at it."""
REPEATS = 4
"""How often a connection may ask for all that there is."""
SPARE = 1000
"""Requests beside those."""


class ContentRefusedError(OSError):
    """A sentence for the agent."""


@dataclass
class Offered:
    """A content that a generation may fetch."""

    content: NodeContent
    listing: Listing
    encoded: bytes
    sums: dict[int, str] = field(default_factory=dict)
    """SHA-256 of files that the listing has none of, by number."""

    @property
    def requests(self) -> int:
        """Requests that fetch all of it."""
        return sum(2 + file.size // BLOCK for file in self.listing.files) + 1 + len(self.encoded) // BLOCK


def offer(path: Path, kind: str = "archive") -> Offered:
    """The folder as a content; its digest is of its listing. Blocks; raises OSError with a sentence."""
    try:
        listing = list_folder(path, kind)
    except (OSError, ArchiveError) as error:
        raise ContentRefusedError(
            f"the {kind} in {path} cannot be read on the server: {_why(error)}; register the model again"
        ) from error
    encoded = encode(listing)
    if len(listing.files) > MAX_FILES or len(encoded) > MAX_LISTING:
        raise ContentRefusedError(f"the {kind} in {path} has {len(listing.files)} files: the limit is {MAX_FILES}")
    return Offered(NodeContent(digest_of(encoded), str(path), kind), listing, encoded)


class ContentSource:
    """`serve` follows one accepted connection, until it ends. Nothing is held of contents but their listings."""

    def __init__(self, offered: Sequence[Offered], *, idle: float = IDLE, alive: float = ALIVE) -> None:
        self._offered = {one.content.digest: one for one in offered}
        self._left = REPEATS * sum(one.requests for one in offered) + SPARE
        self._idle, self._alive = idle, alive
        self._summing: dict[ReadDigest, asyncio.Future[bytes]] = {}
        self._one_sum = asyncio.Semaphore(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Closes the connection at its end, which may also be that the agent takes nothing any more."""
        left = self._left
        try:
            while left > 0:
                request = await asyncio.wait_for(read_request(reader), self._idle)
                await self._answer(request, writer)
                left -= 1
            log.warning("an agent has asked for contents too often on one connection: it was closed")
        except (EOFError, OSError, asyncio.TimeoutError) as error:
            if isinstance(error, ContentStreamError):
                log.warning("%s: the connection was closed", error)
        finally:
            writer.transport.abort()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        kind, body = Answer.DATA, b""
        reading = self._reading(request)
        try:
            while not (await asyncio.wait({reading}, timeout=self._alive))[0]:
                await self._send(writer, Answer.WAIT)
            body = reading.result()
        except ContentRefusedError as error:
            kind, body = Answer.REFUSED, str(error).encode()[: BLOCK // 2]
        await self._send(writer, kind, body)

    def _reading(self, request: Request) -> asyncio.Future[bytes]:
        """A SHA-256 is computed once for all connections that ask for it, and one at a time: a large file takes a
        thread for minutes, and the server has few."""
        if not isinstance(request, ReadDigest):
            return asyncio.ensure_future(asyncio.to_thread(self._read, request))
        if (reading := self._summing.get(request)) is None:
            reading = self._summing[request] = asyncio.ensure_future(self._sum_alone(request))
            reading.add_done_callback(partial(self._summed, request))
        return reading

    async def _sum_alone(self, request: ReadDigest) -> bytes:
        async with self._one_sum:
            return await asyncio.to_thread(self._read, request)

    def _summed(self, request: ReadDigest, reading: asyncio.Future[bytes]) -> None:
        del self._summing[request]
        if not reading.cancelled():
            reading.exception()  # who asked may have left

    async def _send(self, writer: asyncio.StreamWriter, kind: Answer, body: bytes = b"") -> None:
        await asyncio.wait_for(write_answer(writer, kind, body), self._idle)

    def _read(self, request: Request) -> bytes:
        """Blocks. Raises ContentRefusedError."""
        offered = self._offered.get(request.digest)
        if offered is None:
            raise ContentRefusedError("this content is not one of the worker's")
        if isinstance(request, ReadListing):
            start = max(request.offset, 0)
            return offered.encoded[start : start + BLOCK]
        if not 0 <= request.file < len(offered.listing.files):
            raise ContentRefusedError(f"the content does not have a file {request.file}")
        try:
            return _block(offered, request) if isinstance(request, ReadFile) else _sum(offered, request)
        except (OSError, ValueError, OverflowError) as error:
            name, where = offered.listing.files[request.file].path, offered.content.path
            raise ContentRefusedError(
                f"{name} of the {offered.content.kind} in {where} cannot be read on the server: {_why(error)}; "
                "register the model again"
            ) from error


def _block(offered: Offered, request: ReadFile) -> bytes:
    with _open(offered, request.file) as file:
        return os.pread(file.fileno(), BLOCK, request.offset)


def _sum(offered: Offered, request: ReadDigest) -> bytes:
    known = offered.listing.files[request.file].sha256 or offered.sums.get(request.file)
    if not known:
        with _open(offered, request.file) as file:
            digest = hashlib.sha256()
            while block := file.read(BLOCK):
                digest.update(block)
            _check(offered, request.file, os.fstat(file.fileno()))
        known = offered.sums[request.file] = digest.hexdigest()
    return known.encode()


def _open(offered: Offered, number: int) -> io.FileIO:
    file = io.FileIO(Path(offered.content.path, offered.listing.files[number].path))
    try:
        _check(offered, number, os.fstat(file.fileno()))
    except BaseException:
        file.close()
        raise
    return file


def _check(offered: Offered, number: int, status: os.stat_result) -> None:
    """Raises OSError where it is not the file that was listed."""
    listed = offered.listing.files[number]
    if status.st_size != listed.size or (listed.modified and status.st_mtime_ns != listed.modified):
        raise OSError("it has changed since the load began")


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
