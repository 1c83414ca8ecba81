"""Runs management calls on versions: one at a time on each version, to the end also when the client has left."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from weakref import WeakValueDictionary

from msx_core.service_errors import ServiceError, ServiceUnavailable
from msx_frontend.devices.errors import DeviceError
from msx_frontend.management_errors import ResourcesMissing, TooManyWorkers, UnregisterTimedOut, WorkersNotStarted
from msx_frontend.models.changes.records import Counts
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.resources.processes import TooManyProcessesError
from msx_frontend.workers.group_end import GroupEnd

log = logging.getLogger("msx.management")


class Operations:
    """`unregister_timeout`: seconds that a call waits for the end of an unregistration."""

    def __init__(self, unregister_timeout: int) -> None:
        self._unregister_timeout = unregister_timeout
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._background: set[asyncio.Task[None]] = set()
        self._calls = 0
        self._ending = asyncio.Event()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """A call that changes what is served, from its begin to its answer."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @property
    def busy(self) -> bool:
        """Calls are under way, or what follows some."""
        return bool(self._calls or self._background)

    @asynccontextmanager
    async def only(self, name: str, number: str) -> AsyncIterator[None]:
        """Calls on one version run one after the other. Raises ServiceUnavailable when the server ends."""
        with self.under_way():
            async with self._locks.setdefault((name, number), asyncio.Lock()):
                self.check_open()
                yield

    def check_open(self) -> None:
        """Raises ServiceUnavailable when the server ends."""
        if self._ending.is_set():
            raise _shutting_down()

    async def workers_settled(self, version: ModelVersion) -> None:
        """Wait until its workers are ready or wait for resources.

        Raises WorkersNotStarted, or ServiceUnavailable when the server ends.
        """
        with self.under_way():
            await self._settled(version)

    async def _settled(self, version: ModelVersion) -> None:
        settled, ending = asyncio.ensure_future(version.workers.settled()), asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait({settled, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            settled.cancel()
            ending.cancel()
        if not settled.done():
            raise _shutting_down()
        if (end := settled.result()) is not None:
            raise _not_started(version, end)

    async def closed(self, work: Coroutine[Any, Any, None], name: str, left: float) -> None:
        """Wait for the end of an unregistration, which takes up to `left` seconds, but no longer than the limit.

        Raises UnregisterTimedOut; the unregistration goes on then.
        """
        closing = self.in_background(work)
        await asyncio.wait({closing}, timeout=self._unregister_timeout)
        if not closing.done():
            raise UnregisterTimedOut(name, self._unregister_timeout, left)
        await self.over(closing)

    async def over(self, work: asyncio.Task[None]) -> None:
        """Wait for work in the background, which goes on where the caller is cancelled. Raises ServiceUnavailable when
        the server has ended it."""
        await asyncio.wait({work})
        if work.cancelled():
            raise _shutting_down()
        with contextlib.suppress(ServiceError):  # which is logged
            work.result()

    def in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A ServiceError ends it, and is logged."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ServiceError):
            log.error("%s", error.message)
        elif error is not None:
            log.error("a call on a model has ended by a bug", exc_info=error)

    def refuse_new(self) -> None:
        """The server is ending: calls are refused, and calls that wait for workers end."""
        self._ending.set()

    async def stop(self) -> None:
        """Cancel what runs in the background."""
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)


async def start_workers(version: ModelVersion, least: int, most: int) -> None:
    """Raises ResourcesMissing or TooManyWorkers when this server could never start them."""
    check_workers(version, least)
    await version.workers.scale(least, most)


def check_parts(counts: Counts) -> None:
    """Raises ResourcesMissing or TooManyWorkers when this server could never start the workers of all of them."""
    for part, (least, _) in counts:
        check_workers(part, least)


async def start_parts(counts: Counts) -> None:
    """The workers of all stages, or of none. Raises ResourcesMissing or TooManyWorkers like `check_parts`."""
    check_parts(counts)
    await asyncio.gather(*(part.workers.scale(*wanted) for part, wanted in counts))


def check_workers(version: ModelVersion, least: int) -> None:
    """Raises ResourcesMissing or TooManyWorkers when this server could never start that number of workers."""
    try:
        for part in version.parts:
            part.resources.check(max(least, 1) if part.workers.follow_load else least)
    except DeviceError as error:
        raise ResourcesMissing(*version.labels, f"{error}.") from None
    except TooManyProcessesError as error:
        raise TooManyWorkers(f"{error}.") from None


def check_all_start(version: ModelVersion) -> None:
    """Check that a call need not wait for resources of other models. Raises ResourcesMissing."""
    if version.status.shortage is not None:
        raise ResourcesMissing(*version.labels, f"{version.status.shortage.reason}.")


def _shutting_down() -> ServiceUnavailable:
    return ServiceUnavailable("The server is shutting down: models are not changed any more.")


def _not_started(version: ModelVersion, end: GroupEnd) -> ServiceError:
    source = version.source
    return WorkersNotStarted(source.name, source.version, end.reason, out_of_memory=end.out_of_memory)
