"""The end of a server that another frontend follows, while its last requests run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import Iterator
from functools import partial
from typing import NoReturn

from msx_frontend.assembly.left_behind import remove_own
from msx_frontend.assembly.server import Server
from msx_frontend.metrics.handed_counts import ToldCounts
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.supervision.client import SupervisorClient
from msx_frontend.supervision.wire import Message
from msx_frontend.workers.given_groups import GivenGroups, HeldReplica
from msx_frontend.workers.handover_line import BEGUN, COUNTS, HandoverLine, LineEnded, LineMessage
from msx_frontend.workers.replica import Replica
from msx_net.connections.connection import LEAVING
from msx_net.connections.wind_down import LOOK_EVERY

log = logging.getLogger("msx.server")

CALLS_LIMIT = 30.0
"""Seconds that management calls under way have to end; the other frontend makes those that come then."""
BEGUN_LIMIT = 30.0
"""Seconds that the other frontend has to take what this one can only give while it runs: groups with their sequences,
and counts. Less than the supervisor's grace."""
TELL_EVERY = 1.0


class Handover:
    """First the state folder and the ports go to the other frontend, then each worker group when that one asks for it.
    Requests that came before go on here, in groups that have gone over too."""

    def __init__(self, server: Server, supervisor: SupervisorClient, limit: float) -> None:
        self._server, self._supervisor, self._limit = server, supervisor, limit
        self._over, self._asked_until = 0.0, math.inf
        self._groups = GivenGroups(self._replicas, supervisor)
        self._tasks: list[asyncio.Task[None]] = []
        self._line: HandoverLine | None = None
        self._counts = ToldCounts(server.models.context.monitoring.metrics)
        self._counting = False
        """The other frontend goes on counting."""
        self._begun = asyncio.Event()
        self._followed = True

    async def run(self) -> None:
        """Returns when no request is left, or after `limit` seconds."""
        try:
            await self._give_state()
            self._over = time.monotonic() + self._limit
            self._line = self._connect()
            for work in (self._keep_line(self._line), self._groups.end_where_idle(), self._tell_counts()):
                self._tasks.append(asyncio.create_task(work, name="handover"))
            await self._finish()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._begun.wait(), BEGUN_LIMIT)
            await asyncio.wait_for(self._tell(), CALLS_LIMIT)
        except Exception:
            log.exception("the server ends before all of it has gone over")

    async def close(self) -> None:
        """Give no further groups."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._line is not None:
            self._line.close()

    def end(self) -> NoReturn:
        """End at once, and leave all to the frontend that follows: workers, sockets, files. None does where the server
        stops."""
        context = self._server.models.context
        context.access_log.flush()
        if not self._followed:
            remove_own(context.folder.path)
        logging.shutdown()
        self._supervisor.leave()
        os._exit(0)

    async def _give_state(self) -> None:
        server, context = self._server, self._server.models.context
        await server.models.management.hand_over(CALLS_LIMIT)
        await server.front.late.hand_over()
        if server.front.console is not None:
            await server.front.console.close()  # whose streams do not end by themselves
        for calls in server.calls:
            calls.end_watches()
        await asyncio.gather(*(listener.leave() for listener in server.listeners), server.grpc.leave(self._limit))
        self._asked_until = time.monotonic() + LEAVING + LOOK_EVERY
        server.models.launcher.leave()
        await context.snapshots.close()
        context.state.close()
        await context.keys.leave()
        server.status.leave()
        context.instance.leave()

    def _connect(self) -> HandoverLine:
        """Raises OSError."""
        jobs = self._server.front.late.jobs
        running = [] if jobs is None else jobs.running
        sock, self._followed = self._supervisor.hand_over(max(self._over - time.monotonic(), 0.0), running)
        if not self._followed:
            self._begun.set()
        self._counts, self._counting = ToldCounts(self._server.models.context.monitoring.metrics), False
        return HandoverLine(sock, self._answer)

    async def _answer(self, message: Message) -> LineMessage:
        """See `HandoverLine`."""
        ask = message.get("ask")
        if ask == COUNTS:
            self._counting = True
            return LineMessage({COUNTS: self._counts.next()})
        if ask == BEGUN:
            self._begun.set()
            return LineMessage({})
        return await self._groups.answer(message)

    async def _tell_counts(self) -> None:
        """Requests that end here later count there."""
        while True:
            await asyncio.sleep(TELL_EVERY)
            await self._tell()

    async def _tell(self) -> None:
        """A frontend that has not asked yet gets all when it does."""
        with contextlib.suppress(LineEnded):
            while self._line is not None and self._counting and (counts := self._counts.next()):
                await self._line.ask(ask=COUNTS, **{COUNTS: counts})

    async def _keep_line(self, line: HandoverLine) -> None:
        """A frontend that follows may crash, and be followed by another one."""
        while True:
            await asyncio.wait({line.ended})
            log.warning("the frontend that follows has ended: another one is waited for")
            line = self._line = self._connect()

    def _replicas(self) -> Iterator[HeldReplica]:
        for version in self._server.models.context.registry.all_versions():
            for part in version.parts:
                for replica in part.workers.all:
                    sequences = part.queue.dispatcher.sequences
                    is_busy, mates = partial(self._is_busy, version), partial(_replicas_of, version)
                    yield HeldReplica(replica, is_busy, sequences.hand_over, mates)

    def _is_busy(self, version: ModelVersion) -> bool:
        """Requests wait or run that need workers of this version, or may be on their way on connections that are
        kept."""
        workflows = self._server.models.workflows.registry
        if version.queue.busy or (bool(version.source.workflow) and workflows.busy()):
            return True
        return time.monotonic() < self._asked_until

    async def _finish(self) -> None:
        server, left = self._server, self._over - time.monotonic()
        await asyncio.gather(*(listener.finish(left) for listener in server.listeners), server.grpc.finish(left))
        while server.is_busy and time.monotonic() < self._over:  # noqa: ASYNC110  # once, at the end
            await asyncio.sleep(0.02)


def _replicas_of(version: ModelVersion) -> list[Replica]:
    return [replica for part in version.parts for replica in part.workers.all]
