"""The requests that run through the graphs of one model or workflow."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from msx_core.service_errors import ServiceError
from msx_frontend.job import Job


class RunningRequest(Protocol):
    job: Job

    @property
    def begun(self) -> bool:
        """A worker was given a part of it."""


class Running:
    def __init__(self) -> None:
        self._all: set[RunningRequest] = set()
        self._none: asyncio.Event | None = None
        """Set when the last one has ended, for who waits for that."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[RunningRequest]:
        return iter(self._all)

    def add(self, one: RunningRequest) -> None:
        self._all.add(one)

    def discard(self, one: RunningRequest) -> None:
        self._all.discard(one)
        if self._none is not None and not self._all:
            self._none.set()

    async def quiet(self, limit: float) -> bool:
        """Wait up to `limit` seconds until none runs."""
        none = self._none = asyncio.Event()
        if self._all:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(none.wait(), limit)
        return not self._all

    def cancel_all(self, error: ServiceError) -> None:
        for one in list(self._all):
            one.job.cancel(error)
