"""Worker groups that have outlived a frontend, and wait for one that starts the same."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msx_frontend.devices.kept_leases import KeptLease
from msx_frontend.supervision.client import SupervisorClient
from msx_frontend.supervision.program import Program
from msx_frontend.supervision.wire import Message
from msx_frontend.workers.group_note import Note, groups_at, is_held, is_same
from msx_frontend.workers.handed_group import Handing, received
from msx_frontend.workers.handover_line import BEGUN, COUNTS, END, TAKE, HandoverLine, LineEnded, LineMessage
from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.local_rank import LocalRank
from msx_frontend.workers.local_streams import PipeStream, SocketStream, segment_pair, socket_pair
from msx_frontend.workers.segments.allowance import SegmentAllowance, SegmentLimits, SegmentSocket
from msx_frontend.workers.worker_process import SupervisedProcess

log = logging.getLogger("msx.workers")

Counted = Callable[[list[dict[str, Any]]], None]

COUNTS_LIMIT = 5.0
"""Seconds to wait for an answer of the frontend before this one about its counts."""


class KeptGroups:
    """Groups by model, version and place. One that is not asked for is ended by the supervisor, after
    `keep_groups` seconds."""

    def __init__(
        self, supervisor: SupervisorClient, counted: Counted, segments: SegmentAllowance | None = None
    ) -> None:
        """`counted` hears what the metrics of the frontend before this one have counted. `segments`: descriptors of
        shared memory that this one may hold."""
        self._supervisor, self._counted = supervisor, counted
        self._segments = segments or SegmentAllowance(0)
        self._waiting = list(supervisor.turn.kept)
        self._lost: set[tuple[str, str]] = set()
        """Models and versions of which a group that ran has not gone over with what was open in it."""
        self._endings: set[asyncio.Task[LineMessage | None]] = set()
        self._line = None if supervisor.turn.line is None else HandoverLine(supervisor.turn.line, self._told)

    async def go_on_counting(self) -> None:
        """Go on with the counts of the frontend before this one. Returns when it has told all, or has ended."""
        with contextlib.suppress(LineEnded, TimeoutError):
            while self._line is not None:
                asked = asyncio.ensure_future(self._line.ask(ask=COUNTS))
                asked.add_done_callback(self._counts_came)  # also later: the other frontend tells nothing twice
                answer = await asyncio.wait_for(asyncio.shield(asked), COUNTS_LIMIT)
                if not answer.members.get(COUNTS):
                    return

    async def begun(self) -> None:
        """The frontend before this one need not wait for further questions."""
        with contextlib.suppress(LineEnded, TimeoutError):
            if self._line is not None:
                await asyncio.wait_for(self._line.ask(ask=BEGUN), COUNTS_LIMIT)

    async def _told(self, message: Message) -> LineMessage:
        self._count(message)
        return LineMessage({})

    def _counts_came(self, asked: asyncio.Future[LineMessage]) -> None:
        if not asked.cancelled() and asked.exception() is None:
            self._count(asked.result().members)

    def _count(self, message: Message) -> None:
        try:
            self._counted(message.get(COUNTS, []))
        except ValueError as error:
            log.warning("metrics begin anew: what the frontend before this one has counted cannot be read: %s", error)

    def leases(self) -> list[KeptLease]:
        """Leases of those that are waiting, one for each group."""
        return [KeptLease.parse(note["lease"]) for note in self._waiting if "lease" in note and not note["rank"]]

    def places(self, model: str, version: str) -> int:
        """How many workers of this version there are, as their highest place says."""
        places = [note["group"][2] for note in self._supervisor.turn.kept if note["group"][:2] == [model, version]]
        return max(places, default=-1) + 1

    def has_lost(self, model: str, version: str) -> bool:
        """Its workers' sequences are not known any more: the frontend before this one has crashed, or a worker starts
        anew, or goes on by new connections."""
        turn = self._supervisor.turn
        return (model, version) in self._lost or (turn.follows and turn.line is None)

    def close(self) -> None:
        if self._line is not None:
            self._line.close()

    async def ended(self) -> None:
        """Returns when the frontend before this one has ended."""
        if self._line is not None:
            await asyncio.shield(self._line.ended)

    def fits(self, spec: GroupSpec) -> bool:
        """A group waits at this place that is what would be started."""
        return any(is_same(spec, group) for group in groups_at(self._waiting, spec.name))

    async def take(self, spec: GroupSpec) -> list[LocalRank]:
        """The ranks of the group that waits at this place, or that the frontend before this one has, if they are what
        would be started; none otherwise: then it has ended, or ends. Where one was replacing another one, there are
        two: the first that fits goes on."""
        found = groups_at(self._waiting, name := spec.name)
        self._waiting = [note for note in self._waiting if note["group"] != name]
        fitting = [group for group in found if is_same(spec, group)]
        ranks: list[LocalRank] = []
        for group in fitting:
            if (taken := await self._taken(spec, group)) is None:
                continue  # ended below, with those that do not fit
            found.remove(group)
            if ranks := taken:
                break
            self._lose(spec)
        for group in found:
            if not ranks:
                self._lose(spec)
                log.info("worker %d starts anew: what process %d has is not the same", spec.worker, group[0]["pid"])
            await self._end(spec, group, makes_room=not ranks)
        return ranks

    async def _taken(self, spec: GroupSpec, found: Sequence[Note]) -> list[LocalRank] | None:
        """Empty where one of them has ended meanwhile; the others end then. None where it stays in the frontend before
        this one."""
        try:
            handing = await self._handed(spec, found) if is_held(found) else None
        except _Stays as stays:
            log.info("worker %d starts anew: %s", spec.worker, stays)
            return None
        ranks = self._adopted(spec, found, handing)
        if len(ranks) == len(found):
            log.info("worker %d goes on in process %d, which has its model", spec.worker, ranks[0].pid)
            if handing is None:
                self._lose(spec)
            else:
                spec.resumed(handing)
            return ranks
        if handing is not None:
            handing.close()
        await end_all(ranks)
        return []

    def _lose(self, spec: GroupSpec) -> None:
        self._lost.add((spec.load.model_name, spec.load.model_version))

    async def _end(self, spec: GroupSpec, found: Sequence[Note], *, makes_room: bool) -> None:
        """Requests of one that is held end in the frontend before this one. What has devices for itself is waited for
        where it `makes_room`."""
        if not is_held(found):
            return await end_all(self._adopted(spec, found, None))
        ended = asyncio.create_task(self._ask(END, spec, found), name="end-kept-group")
        self._endings.add(ended)
        ended.add_done_callback(self._endings.discard)
        if makes_room and spec.lease is not None and spec.lease.numbers:
            spec.told(0, "waiting for the devices of the worker before it, whose requests run")
            await ended
        return None

    async def _handed(self, spec: GroupSpec, found: Sequence[Note]) -> Handing | None:
        """The group as it runs; None where its worker waits for new connections. Raises _Stays."""
        answer = await self._ask(TAKE, spec, found)
        if answer is not None and (reason := answer.members.get("stays")):
            raise _Stays(reason)
        if answer is None or "running" not in answer.members:
            return None
        return received(answer.members["running"], answer.descriptors)

    async def _ask(self, ask: str, spec: GroupSpec, found: Sequence[Note]) -> LineMessage | None:
        """None where the other frontend has ended."""
        if self._line is None:
            return None
        try:
            return await self._line.ask(ask=ask, group=spec.name, pid=found[0]["pid"])
        except LineEnded:
            return None

    def _adopted(self, spec: GroupSpec, found: Sequence[Note], handing: Handing | None) -> list[LocalRank]:
        """Ranks that have not ended meanwhile."""
        ranks: list[LocalRank] = []
        for note in found:
            try:
                ranks.append(self._rank(note, handing))
            except OSError as error:
                log.warning("worker %d: process %d cannot be taken over: %s", spec.worker, note["pid"], error)
        return ranks

    def _rank(self, note: Note, handing: Handing | None) -> LocalRank:
        """Raises OSError."""
        pid, shares = note["pid"], note.get("segments")
        if handing is not None:
            (data, control), segments = handing.ends[note["rank"]], handing.segments
            stdout, stderr = self._supervisor.adopt(pid, [])
        else:
            with ExitStack() as ours, ExitStack() as theirs:
                (data, data_fd), (control, control_fd) = socket_pair(ours, theirs), socket_pair(ours, theirs)
                segments, *segment_fd = segment_pair(ours, theirs) if shares else (None,)
                stdout, stderr = self._supervisor.adopt(pid, [data_fd, control_fd, *segment_fd])
                ours.pop_all()
        return LocalRank(
            SupervisedProcess(pid, self._supervisor),
            Path(note["work_dir"]),
            data=SocketStream(data),
            control=SocketStream(control),
            stdout=PipeStream(stdout),
            stderr=PipeStream(stderr),
            segments=self._shared(segments, shares) if segments is not None and shares else None,
            allowance=self._segments,
            release=Program(*note["program"]).version,
            old=note.get("old", False),
        )

    def _shared(self, end: socket.socket, shares: Sequence[int]) -> SegmentSocket:
        owner, *limits = shares
        granted = SegmentLimits(*limits)
        self._segments.go_on_with(granted)
        return SegmentSocket(end, granted, owner)


class _Stays(Exception):
    """A group does not go over; the message is a sentence without its full stop."""


async def end_all(ranks: Sequence[LocalRank]) -> None:
    """Returns when they are gone."""
    for rank in ranks:
        rank.kill()
    for rank in ranks:
        await rank.gone()
