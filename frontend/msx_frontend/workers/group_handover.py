"""A worker group that runs goes over to another frontend, with its connections and its requests."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.handed_group import HandedGroup, memory_file
from msx_frontend.workers.rank_group import RankGroup
from msx_frontend.workers.watchdog import Watchdog
from msx_protocol import Loaded, MetricInfo

LIMIT = 2.0
"""Seconds until the worker has read what was sent to it, and its ranks have ended a call together."""
LOOK_EVERY = 0.002


class NotHandedOver(Exception):
    """The group stays where it is; the message is a sentence without its full stop."""


class WorkerBusy(NotHandedOver):
    """Its worker does not read now: try again."""


class Given(NamedTuple):
    """`descriptors` are the caller's: data and control of each rank, the beginnings of frames that were read from them,
    in files, and data and control to this frontend."""

    group: HandedGroup
    descriptors: list[int]


class GroupHandover:
    """This frontend has the requests that it has sent, and may send more: they go through the other frontend."""

    def __init__(self, ranks: RankGroup, runner: BatchRunner, watchdog: Watchdog) -> None:
        self._ranks, self._runner, self._watchdog = ranks, runner, watchdog
        self._channels = [channel for rank in ranks for channel in (rank.data, rank.control)]

    async def give(self, loaded: Loaded, forms: Sequence[MetricInfo]) -> Given:
        """Raises NotHandedOver."""
        self._runner.flush()
        for channel in self._channels:
            channel.hold()
        try:
            await self._settled()
        except NotHandedOver:
            for channel in self._channels:
                channel.go_on()
            raise
        return await self._given(loaded, forms)

    async def _settled(self) -> None:
        over = time.monotonic() + LIMIT
        while any(channel.unsent for channel in self._channels) or self._watchdog.in_call:
            if time.monotonic() > over:
                raise WorkerBusy("its worker does not read what was sent to it")
            await asyncio.sleep(LOOK_EVERY)
        if not all(channel.is_open for channel in self._channels):
            raise NotHandedOver("its worker has ended")

    async def _given(self, loaded: Loaded, forms: Sequence[MetricInfo]) -> Given:
        """From here on there is no way back."""
        self._watchdog.close()
        ends, begun = [], []
        for channel in self._channels:
            end, parts = channel.detach()
            ends.append(end.detach())
            begun.append(memory_file(parts))
        for rank in self._ranks:
            rank.hand_over()
        in_flight = self._runner.in_flight
        group = HandedGroup(
            loaded,
            list(forms),
            in_flight.number,
            in_flight.handed(time.monotonic()),
            len(self._ranks),
        )
        relay = await self._relayed()
        for channel in self._channels[2:]:  # of ranks that are sent no requests
            channel.go_on()
        return Given(group, [*ends, *begun, *relay])

    async def _relayed(self) -> list[int]:
        """Connect to the other frontend instead of the worker; returns its ends."""
        loop, leader, others = asyncio.get_running_loop(), self._ranks.leader, list[int]()
        with ExitStack() as stack:
            for channel in (leader.data, leader.control):
                own, other = socket.socketpair()
                with other:
                    others.append(os.dup(other.fileno()))
                    stack.callback(os.close, others[-1])
                    await loop.create_unix_connection(lambda channel=channel: channel, sock=own)  # type: ignore[misc]
            stack.pop_all()
        return others
