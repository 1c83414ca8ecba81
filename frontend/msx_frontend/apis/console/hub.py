"""The event stream of the console: one look a second at the server for all browsers that are there, none without.

A browser gets all parts first, and then those that have changed. One that reads too slowly misses changes and gets all
parts again, so that what waits for it stays bounded.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec

from msx_core.service_errors import ServiceError, ServiceUnavailable
from msx_frontend.apis.console.parts import Part

log = logging.getLogger("msx.console")

EVERY = 1.0
"""Seconds between two looks."""
AT_ONCE = 10
"""Parts that are looked at before others may run: about a millisecond."""
MOST_CONSOLES = 50
MOST_WAITING = 1 << 20
"""Bytes of changes that wait for a browser."""
CHECKED = 15.0
"""Seconds between two looks at the key of a stream, which also show the browser that the server is there."""


class Feed:
    """Parts that wait for one browser."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self.size = 0
        """Bytes."""
        self.behind = True
        """It needs all parts: it has just come, or has missed some."""
        self.over = False
        """Its browser has left."""
        self._news = asyncio.Event()

    def put(self, event: bytes) -> None:
        if not self.behind:
            self._waiting.append(event)
            self.size += len(event)
            if self.size > MOST_WAITING:
                self._waiting, self.size, self.behind = [], 0, True
        self._news.set()

    def end(self) -> None:
        self.over = True
        self._news.set()

    def take(self) -> bytes:
        self._news.clear()
        taken, self._waiting, self.size = b"".join(self._waiting), [], 0
        return taken

    async def news(self, limit: float) -> bool:
        try:
            await asyncio.wait_for(self._news.wait(), limit)
        except asyncio.TimeoutError:
            return False
        return True


class Hub:
    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = parts
        self._known: dict[str, bytes] = {}
        """Each part as JSON."""
        self._feeds: set[Feed] = set()
        self._task: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        self._closed = False

    @property
    def watched(self) -> bool:
        """A browser is there."""
        return bool(self._feeds)

    def open(self) -> Feed:
        """Open a feed for one browser. Raises ServiceUnavailable."""
        if len(self._feeds) >= MOST_CONSOLES:
            raise ServiceUnavailable(
                f"{MOST_CONSOLES} consoles are open, which is the most that one server shows itself to: close one."
            )
        feed = Feed()
        self._feeds.add(feed)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="console")
        return feed

    def leave(self, feed: Feed) -> None:
        """Its stream ends. Idempotent."""
        feed.end()
        self._feeds.discard(feed)
        if not self._feeds and self._task is not None:
            self._task.cancel()
            self._task = None
            self._known.clear()
            self._looked.clear()

    async def events(self, feed: Feed, check: Callable[[], None]) -> AsyncIterator[bytes]:
        """Server-sent events. `check` raises ServiceError when the key of the stream is not good any more: then the
        stream says so and ends."""
        try:
            await self._looked.wait()
            checked = asyncio.get_running_loop().time()
            while not (self._closed or feed.over):
                if feed.behind:
                    feed.behind = False
                    feed.take()
                    yield _event("all", {"set": _raw(self._known)})
                elif waiting := feed.take():
                    yield waiting
                elif not await feed.news(CHECKED):
                    yield b": the server is there\n\n"
                if (now := asyncio.get_running_loop().time()) - checked >= CHECKED:
                    checked = now
                    check()
        except ServiceError as error:
            yield _event("refused", {"message": error.message})
        finally:
            self.leave(feed)

    async def close(self) -> None:
        """All streams end."""
        self._closed = True
        self._looked.set()
        for feed in self._feeds:
            feed.put(b"")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:
                log.exception("the console cannot be shown what has changed")
            await asyncio.sleep(EVERY)

    async def look(self) -> None:
        """Tell all browsers what has changed."""
        known, changed = dict[str, bytes](), dict[str, bytes]()
        for number, (name, value) in enumerate(self._parts):
            known[name] = data = msgspec.json.encode(value)
            if self._known.get(name) != data:
                changed[name] = data
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        gone = sorted(self._known.keys() - known.keys())
        self._known = known
        self._looked.set()
        if changed or gone:
            event = _event("change", {"set": _raw(changed), "gone": gone})
            for feed in self._feeds:
                feed.put(event)


def _raw(parts: dict[str, bytes]) -> dict[str, msgspec.Raw]:
    return {name: msgspec.Raw(data) for name, data in parts.items()}


def _event(name: str, value: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(value))
