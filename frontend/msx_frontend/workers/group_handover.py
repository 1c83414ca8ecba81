"""A worker group that runs goes over to another frontend, with its connections and its requests."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import ExitStack
from typing import NamedTuple

from msx_frontend.job import Job
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.guests import Guests
from msx_frontend.workers.handed_group import GAP, HandedGroup, HandedSequence, Handing, memory_file
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
    """Then, of a stage, the socket for shared memory."""


class GroupHandover:
    """Takes a group over, and gives it away. The frontend that gives it keeps the requests that it has sent, and may
    send more: they go through the other one."""

    def __init__(self, ranks: RankGroup, runner: BatchRunner, watchdog: Watchdog) -> None:
        self._ranks, self._runner, self._watchdog = ranks, runner, watchdog
        self._channels = [channel for rank in ranks for channel in (rank.data, rank.control)]
        self.loaded: Loaded | None = None
        """Message of rank 0 when it was loaded."""
        self.forms: list[MetricInfo] = []
        """All that rank 0 has sent."""
        self._handing: Handing | None = None
        self._guests: Guests | None = None

    # -- taking it over --

    def resume(self, handing: Handing) -> None:
        """Called during the launch: the group runs already."""
        self._handing = handing

    @property
    def resumes(self) -> bool:
        return self._handing is not None

    def restore(self) -> HandedGroup | None:
        """The state that it had, as far as its requests need it; called before the ranks are connected. None for a
        group that starts."""
        if (handing := self._handing) is None:
            return None
        self._guests = Guests(self._runner, self._ranks.leader)
        self._runner.configure(handing.group.loaded)
        self._runner.in_flight.go_on_after(handing.group.number + GAP)
        self._guests.restore(handing.group.batches)
        for rank, (data, control) in zip(self._ranks, handing.begun, strict=True):
            rank.resume(data, control)
        return handing.group

    def sequences(self) -> list[tuple[HandedSequence, list[Job]]]:
        """Sequences that were open, with those of their jobs that are not answered yet."""
        if (handing := self._handing) is None:
            return []
        held = self._runner.in_flight.open
        return [(one, [held[number][0] for number in one.running if number in held]) for one in handing.group.sequences]

    async def connect(self) -> None:
        """Connect to the other frontend, whose requests are restored. Raises OSError."""
        if self._handing is not None and self._guests is not None:
            await self._guests.connect(*self._handing.relay)

    def close(self) -> None:
        if self._guests is not None:
            self._guests.close()

    # -- giving it away --

    @property
    def may_be(self) -> bool:
        """Another frontend may take it over, if its worker is on this machine."""
        return all(rank.hands_over for rank in self._ranks)

    def leave(self) -> list[int]:
        """Close the connections to its processes, which go on: they wait for another frontend. Returns their
        numbers."""
        pids = [rank.pid for rank in self._ranks if rank.pid]
        for rank in self._ranks:
            rank.leave()
        return pids

    async def give(self) -> Given:
        """Let another frontend have the group as it runs. Raises NotHandedOver."""
        if not (self._runner.ready and self.may_be) or self.loaded is None:
            raise NotHandedOver("it is not ready")
        self._runner.flush()
        for channel in self._channels:
            channel.hold()
        try:
            await self._settled()
        except NotHandedOver:
            for channel in self._channels:
                channel.go_on()
            raise
        return await self._given(self.loaded)

    async def _settled(self) -> None:
        over = time.monotonic() + LIMIT
        port = self._runner.port
        while any(one.unsent for one in (*self._channels, *([port] if port else []))) or self._watchdog.in_call:
            if time.monotonic() > over:
                raise WorkerBusy("its worker does not read what was sent to it")
            await asyncio.sleep(LOOK_EVERY)
        if not all(channel.is_open for channel in self._channels):
            raise NotHandedOver("its worker has ended")

    async def _given(self, loaded: Loaded) -> Given:
        """There is no way back from here."""
        self._watchdog.close()
        ends, begun = [], []
        for channel in self._channels:
            end, parts = channel.detach()
            ends.append(end.detach())
            begun.append(memory_file(parts))
        for rank in self._ranks:
            rank.hand_over()
        in_flight = self._runner.in_flight
        batches = in_flight.handed(time.monotonic())
        sharing = self._runner.sharing
        shares = sharing is not None
        group = HandedGroup(loaded, self.forms, in_flight.number, batches, len(self._ranks), shares=shares)
        segments = [] if sharing is None else [sharing.leave().detach()]
        self._runner.port = self._runner.sharing = None
        relay = await self._relayed()
        for channel in self._channels[2:]:  # of ranks that are sent no requests
            channel.go_on()
        return Given(group, [*ends, *begun, *relay, *segments])

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
