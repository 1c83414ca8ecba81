"""Fetches one content from the server: asked for in blocks, resumed where it broke, each file checked."""

import asyncio
import io
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from msx_archiver import record
from msx_archiver.errors import ArchiveError
from msx_archiver.sizes import human
from msx_ray.agent_messages import NodeContent
from msx_ray.content_frames import (
    BLOCK,
    Answer,
    ReadDigest,
    ReadFile,
    ReadListing,
    Request,
    read_answer,
    write_request,
)
from msx_ray.listing import MAX_LISTING, ListedFile, Listing, decode, digest_of, own_platform

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[], Awaitable[Streams]]

ATTEMPTS = 5
"""Connections in a row that may bring nothing."""
PAUSES = (0.1, 0.5, 1.0, 2.0)
"""Seconds before the next one."""
TELL_AGAIN = 5.0
"""Seconds after which a phase that lasts is told again."""
SILENCE = 60.0
"""Seconds within which an answer must come."""


class FetchError(OSError):
    """A sentence; another attempt would not help."""


class Fetching:
    """Made for one content, of one process at a time. `progress` gets phases in words, often."""

    def __init__(
        self, content: NodeContent, dial: Dial, progress: Callable[[str], None], silence: float = SILENCE
    ) -> None:
        self._content, self._dial, self._progress, self._silence = content, dial, progress, silence
        self._streams: Streams | None = None
        self._failures = 0
        self._done = 0
        self._total = 0

    async def listing(self) -> Listing:
        """Raises OSError."""
        encoded = b""
        while True:
            part = await self._ask(ReadListing(self._content.digest, len(encoded)))
            encoded += part
            if len(encoded) > MAX_LISTING:
                raise FetchError(f"the listing of the {self._content.kind} is larger than {human(MAX_LISTING)}")
            if len(part) < BLOCK:
                return self._checked(encoded)

    def _checked(self, encoded: bytes) -> Listing:
        if digest_of(encoded) != self._content.digest:
            raise FetchError(f"the listing of the {self._content.kind} was altered on its way")
        try:
            listing = decode(encoded)
        except (ArchiveError, ValueError) as error:
            raise FetchError(f"the {self._content.kind} is refused: {str(error).rstrip('.')}") from None
        if listing.suits and listing.suits != own_platform():
            raise FetchError(
                f"the model's requirements were installed for {listing.suits}, and this node has {own_platform()}: "
                "use nodes like the server, or install the requirements on the nodes and set "
                "install_py_dep_per_model=false"
            )
        return listing

    async def files(self, listing: Listing, into: Path) -> Listing:
        """Returns the listing with the SHA-256 of each file. Raises OSError; what has arrived stays."""
        self._total = listing.total
        made = [await self._file(number, file, into) for number, file in enumerate(listing.files)]
        return Listing(listing.suits, made)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _file(self, number: int, file: ListedFile, into: Path) -> ListedFile:
        path = into / file.path
        done = self._done
        for _ in range(2):  # what had arrived before a break may be damaged: then once more from its start
            self._done = done
            await self._receive(number, file, path)
            expected = file.sha256 or (await self._ask(ReadDigest(self._content.digest, number))).decode("ascii")
            if await self._digest(path) == expected:
                return ListedFile(file.path, file.size, file.executable, expected, 0)
            await asyncio.to_thread(path.unlink)
        raise FetchError(f"{file.path} of the {self._content.kind} was altered on its way")

    async def _digest(self, path: Path) -> str:
        """A large file takes minutes: the server is told that the agent is at it."""
        reading = asyncio.ensure_future(asyncio.to_thread(record.digest, path))
        while not (await asyncio.wait({reading}, timeout=TELL_AGAIN))[0]:
            self._progress(f"checking {path.name} of the {self._content.kind}")
        return reading.result()

    async def _receive(self, number: int, file: ListedFile, path: Path) -> None:
        out = await asyncio.to_thread(_open, path, file)
        with out:
            have = os.fstat(out.fileno()).st_size
            self._done += have
            while have < file.size:
                block = await self._ask(ReadFile(self._content.digest, number, have))
                if not block or have + len(block) > file.size:
                    raise FetchError(f"{file.path} has changed on the server: register the model again")
                await asyncio.to_thread(_write_all, out.fileno(), block)
                have += len(block)
                self._done += len(block)
                self._tell()

    def _tell(self) -> None:
        whole = human(self._total)
        self._progress(f"fetching the {self._content.kind}: {human(self._done)} of {whole}")

    async def _ask(self, request: Request) -> bytes:
        """Dials again after a break. Raises OSError."""
        while True:
            try:
                kind, body = await self._answer(request)
            except (OSError, EOFError, asyncio.TimeoutError) as error:
                await self._broke(error)
                continue
            self._failures = 0
            if kind is Answer.REFUSED:
                raise FetchError(body.decode("utf-8", "replace"))
            return body

    async def _answer(self, request: Request) -> tuple[Answer, bytes]:
        if self._streams is None:
            self._streams = await self._dial()
        reader, writer = self._streams
        await asyncio.wait_for(write_request(writer, request), self._silence)
        while True:
            kind, body = await asyncio.wait_for(read_answer(reader), self._silence)
            if kind is not Answer.WAIT:
                return kind, body
            self._progress(f"the server reads the {self._content.kind}")

    async def _broke(self, error: Exception) -> None:
        self.close()
        self._failures += 1
        if self._failures >= ATTEMPTS:
            reason = str(error) or "no answer"
            raise FetchError(
                f"the {self._content.kind} cannot be fetched from the server: {ATTEMPTS} connections in a row broke "
                f"without a byte ({reason}); what has arrived is kept, and the next load goes on from there"
            ) from error
        self._progress(f"fetching the {self._content.kind}: connecting again after a break")
        await asyncio.sleep(PAUSES[min(self._failures, len(PAUSES)) - 1])


def _open(path: Path, file: ListedFile) -> io.FileIO:
    """Open it to append to what has arrived of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > file.size:
        path.unlink()
    out = io.FileIO(path, "a")
    os.fchmod(out.fileno(), 0o755 if file.executable else 0o644)
    return out


def _write_all(fd: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(fd, view) :]
