"""Worker groups of a frontend that another one follows: each goes over when that one asks for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msx_frontend.supervision.client import SupervisorClient
from msx_frontend.supervision.wire import Message
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.group import WorkerGroup
from msx_frontend.workers.group_handover import Given, NotHandedOver, WorkerBusy
from msx_frontend.workers.group_state import GroupState
from msx_frontend.workers.handed_group import HandedSequence, described
from msx_frontend.workers.handover_line import END, TAKE, LineMessage
from msx_frontend.workers.replica import Replica

log = logging.getLogger("msx.workers")

LOOK_EVERY = 0.02
SHARE_LIMIT = 5.0
"""Seconds that requests have whose values stand in shared memory; new ones wait for them."""
SHARES = "requests of the server before this one use its shared memory for long"
PAUSE = 0.5
"""Seconds between two tries to give a group whose worker does not read."""


class HeldReplica(NamedTuple):
    """`is_busy` tells whether requests wait that may need it: its model's, and those of its workflow. `leave` tells
    which sequences of a stateful model the group has: they go on in the other frontend. `all` are the replicas of all
    stages of its version, among which it is."""

    replica: Replica
    is_busy: Callable[[], bool]
    leave: Callable[[BatchRunner], list[HandedSequence]]
    all: Callable[[], list[Replica]]


class GivenGroups:
    def __init__(self, replicas: Callable[[], Iterable[HeldReplica]], supervisor: SupervisorClient) -> None:
        self._replicas, self._supervisor = replicas, supervisor

    async def answer(self, message: Message) -> LineMessage:
        """See `HandoverLine`."""
        held, ask = self._find(message.get("group"), message.get("pid")), message.get("ask")
        if held is not None and ask == TAKE:
            return await self._give(*held)
        if held is not None and ask == END:
            await self._end(held[0])
        return LineMessage({})

    async def end_where_idle(self) -> None:
        """End those that cannot go over, on other machines: what they hold is free for the other frontend then."""
        staying = [held for held in self._replicas() if (group := held.replica.group) and not group.handover.may_be]
        await asyncio.gather(*map(self._end, staying))

    def _find(self, name: Any, pid: int | None) -> tuple[HeldReplica, WorkerGroup] | None:
        """`pid` is that of one of its processes: while a worker is replaced, two have this name. None from an earlier
        release."""
        for held in self._replicas():
            group = held.replica.group
            if group is None or group.state is GroupState.ENDED or group.spec.name != name:
                continue
            if pid is None or pid in [rank.pid for rank in group.ranks]:
                return held, group
        return None

    async def _give(self, held: HeldReplica, group: WorkerGroup) -> LineMessage:
        """One that does not serve is left to the other frontend, which makes new connections."""
        if group.runner.sharing is not None and not await _share_no_more(held.all):
            log.info("worker %d stays, and ends with its requests: %s", group.number, SHARES)
            return LineMessage({"stays": SHARES})
        try:
            given = await self._given(group)
        except NotHandedOver as error:
            log.info("worker %d goes over when it is idle: %s", group.number, error)
            await self._idle(held)
            held.replica.leave()
            self._supervisor.release(group.handover.leave())
            await group.drain(0)
            return LineMessage({})
        given.group.sequences = held.leave(group.runner)
        log.info("worker %d goes over with %d requests", group.number, group.runner.busy)
        return LineMessage({"running": described(given.group)}, given.descriptors)

    @staticmethod
    async def _given(group: WorkerGroup) -> Given:
        """Raises NotHandedOver."""
        while group.state in (GroupState.STARTING, GroupState.LOADING):  # noqa: ASYNC110  # once for a group
            await asyncio.sleep(LOOK_EVERY)
        while group.runner.awaited:
            try:
                return await group.handover.give()
            except WorkerBusy:
                await asyncio.sleep(PAUSE)
        return await group.handover.give()

    async def _end(self, held: HeldReplica) -> None:
        await self._idle(held)
        held.replica.leave()
        await held.replica.stop(0)
        held.replica.release()

    @staticmethod
    async def _idle(held: HeldReplica) -> None:
        while held.is_busy():  # noqa: ASYNC110  # once for a group
            await asyncio.sleep(LOOK_EVERY)


async def _share_no_more(replicas: Callable[[], list[Replica]]) -> bool:
    """Let values of further requests between the stages of a version travel in frames, and forget their shared memory
    when no request has a value in it. False where that takes longer than SHARE_LIMIT."""
    over = time.monotonic() + SHARE_LIMIT
    while True:
        found = [one.group.runner.sharing for one in replicas() if one.group is not None]
        shared = [sharing for sharing in found if sharing is not None]
        for sharing in shared:
            sharing.end()
        if not any(sharing.in_use for sharing in shared):
            break
        if time.monotonic() > over:
            return False
        await asyncio.sleep(LOOK_EVERY)
    for sharing in shared:
        sharing.port.forget_all()
    return True
