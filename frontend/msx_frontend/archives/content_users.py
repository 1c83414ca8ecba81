"""Who uses what archives hold, and its removal when nobody does any more."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from msx_archiver.cache import UnpackedArchive
from msx_archiver.schema import M

T = TypeVar("T")


class ContentUsers:
    """Counts the users of each content, by its digest.

    A thread that unpacks may find a content for which nobody counts yet, and goes on when its caller was cancelled: it
    may even write the content again. So nothing is removed before the last of such threads has ended.
    """

    def __init__(self, remove: Callable[[str], None]) -> None:
        """`remove` blocks."""
        self._remove = remove
        self._counts: Counter[str] = Counter()
        self._threads = 0
        self._left: set[str] = set()
        """Contents that nobody used when they were last looked at."""
        self._checks: dict[asyncio.Task[None], str] = {}
        self._removing = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def known(self) -> Collection[str]:
        """Contents in use or kept by `keep`; the collection changes with them."""
        return self._counts.keys()

    def in_use(self, digest: str) -> bool:
        return self._counts[digest] > 0

    def share(self, digest: str) -> None:
        """Count a user more of a content that is in use."""
        self._counts[digest] += 1

    def keep(self, digest: str) -> None:
        """Count a user less, who expects another one."""
        self._counts[digest] -= 1

    async def unpack(self, unpack: Callable[[], UnpackedArchive[M]]) -> UnpackedArchive[M]:
        """Unpack in a thread, and count a user. One who was cancelled is not counted. Raises what `unpack` does."""
        task = await self._begin(unpack, lambda unpacked: self.share(unpacked.digest))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._spawn(self._give_up(task))
            raise

    async def check(self, digest: str, check: Callable[[], None]) -> None:
        """Do what may unpack a content in use again, in a thread. Raises what `check` does."""
        task = await self._begin(check)
        self._checks[task] = digest
        task.add_done_callback(self._checks.__delitem__)
        await asyncio.shield(task)

    async def release(self, digest: str) -> None:
        """Count a user less. After the last one the content is removed: when this returns, or where something else is
        being unpacked, behind that."""
        self._counts[digest] -= 1
        if self._counts[digest] <= 0:
            del self._counts[digest]
            self._left.add(digest)
            await asyncio.shield(self._spawn(self._remove_after_checks(digest)))

    async def _begin(self, work: Callable[[], T], done: Callable[[T], None] = lambda _: None) -> asyncio.Task[T]:
        async with self._removing:  # what is being removed must not be found
            self._threads += 1
        task = self._spawn(_in_thread(work, done))
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._threads -= 1
        if self._left and not task.cancelled():
            self._spawn(self._remove_left())

    async def _give_up(self, task: asyncio.Task[UnpackedArchive[M]]) -> None:
        with suppress(Exception):  # the one to tell has left
            await self.release((await task).digest)

    async def _remove_after_checks(self, digest: str) -> None:
        if checks := [task for task, of in self._checks.items() if of == digest]:
            await asyncio.wait(checks)
        await self._remove_left()

    async def _remove_left(self) -> None:
        async with self._removing:
            while self._left and not self._threads:
                digest = self._left.pop()
                if digest not in self._counts:
                    await asyncio.to_thread(self._remove, digest)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _in_thread(work: Callable[[], T], done: Callable[[T], None]) -> T:
    result = await asyncio.to_thread(work)
    done(result)
    return result
