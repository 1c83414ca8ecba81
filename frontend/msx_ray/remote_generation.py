"""One generation of a group whose ranks run on nodes, from the server's side."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

from msx_frontend.plugins.launchers import GroupPlacement, GroupSpec
from msx_ray.agent_messages import (
    RANK_STREAMS,
    Begin,
    CannotStart,
    Cleared,
    Ended,
    FromAgent,
    Kill,
    Meet,
    NodeContent,
    Progress,
    RankStart,
    RankUsage,
    Ready,
    Started,
)
from msx_ray.agent_stream import AgentStream
from msx_ray.crew import Crew
from msx_ray.door import Door
from msx_ray.remote_rank import RemoteRank

SILENCE_LIMIT = 120.0
"""Seconds in which some agent must say how far it has come, while a generation starts."""

CLEAR_LIMIT = 45.0
"""Seconds that agents have to end what a launch that has failed has left; then the launch is over all the same."""


class RemoteGeneration:
    """Made for one launch. `start` returns its ranks; `clear` ends what there is of them."""

    def __init__(self, number: int, spec: GroupSpec, placement: GroupPlacement, crew: Crew) -> None:
        self.number = number
        self._spec, self._placement, self._crew = spec, placement, crew
        self._ready: dict[int, Ready] = {}
        self._pids: dict[int, int] = {}
        self._ranks: dict[int, RemoteRank] = {}
        self._cleared: set[int] = set()
        self._contents: Sequence[NodeContent] = ()
        self._failure = ""
        self._changed = asyncio.Event()
        crew.begin(self)

    async def start(self, door: Door, port: int, contents: Sequence[NodeContent]) -> Sequence[RemoteRank]:
        """Raises OSError."""
        self._contents = contents
        for share, link in zip(self._placement.shares, self._crew.links, strict=True):
            starts = [RankStart(rank, dict(self._spec.ranks[rank].env)) for rank in share.ranks]
            name = f"{self._spec.worker}-{self._spec.generation}"
            world, agents = len(self._spec.ranks), [one.address for one in self._placement.shares]
            link.tell(Begin(self.number, name, door.key, port, starts, list(contents), world, agents))
        await self._until(lambda: len(self._ready) == len(self._placement.shares))
        lead = next(ready for ready in self._ready.values() if ready.master_port)
        self._crew.tell(Meet(self.number, lead.address, lead.master_port, lead.plan_port, lead.plan_fingerprint))
        await self._until(lambda: len(self._pids) == len(self._spec.ranks))
        door.arrived.add_done_callback(lambda _: self._changed.set())
        await self._until(door.arrived.done)
        return self._made(door.arrived.result())

    async def clear(self) -> None:
        """Returns when no agent has anything of it left."""
        self.kill()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._all_cleared(), CLEAR_LIMIT)

    def kill(self) -> None:
        self._crew.tell(Kill(self.number))

    def received(self, share: int, message: FromAgent) -> None:
        if not self._keeps_to_protocol(share, message):
            node = self._crew.links[share].place.node
            self._failure = self._failure or f"The agent on node {node} does not keep to the protocol."
        elif isinstance(message, Ready):
            self._ready[share] = message
            self._tell(share, "starting the process")
        elif isinstance(message, Progress):
            self._tell(share, f"{message.phase} (on {self._crew.links[share].place.node})")
        elif isinstance(message, CannotStart):
            self._failure = self._failure or message.reason
        elif isinstance(message, Started):
            self._pids[message.rank] = message.pid
        elif isinstance(message, Ended):
            self._ended(message)
        elif isinstance(message, RankUsage) and message.rank in self._ranks:
            self._ranks[message.rank].report(message)
        elif isinstance(message, Cleared):
            self._clear(share)
        self._changed.set()

    def _keeps_to_protocol(self, share: int, message: FromAgent) -> bool:
        """Whether it speaks of its own ranks, and says all that is needed of its folders and of where ranks meet."""
        own = self._placement.shares[share].ranks
        if isinstance(message, Ready):
            return len(message.contents) == len(self._contents) and bool(message.master_port) == (0 in own)
        return not isinstance(message, (Started, Ended, RankUsage)) or message.rank in own

    def _tell(self, share: int, phase: str) -> None:
        for rank in self._placement.shares[share].ranks:
            self._spec.told(rank, phase)

    def left(self, share: int, reason: str) -> None:
        self._failure = self._failure or f"{reason[0].upper()}{reason[1:]}."
        for rank in self._placement.shares[share].ranks:
            if rank in self._ranks:
                self._ranks[rank].end(lost=reason)
        self._clear(share)
        self._changed.set()

    def _ended(self, message: Ended) -> None:
        if message.rank in self._ranks:
            self._ranks[message.rank].end(message.code)
        else:
            self._failure = (
                self._failure or f"Rank {message.rank} ended with code {message.code} before it was connected."
            )

    def _clear(self, share: int) -> None:
        self._cleared.add(share)
        self._clear_with({share})
        if len(self._cleared) == len(self._placement.shares):
            self._crew.forget(self)

    def _clear_with(self, shares: set[int]) -> None:
        for share in shares:
            for rank in self._placement.shares[share].ranks:
                if rank in self._ranks:
                    self._ranks[rank].end(lost=self._failure.rstrip("."))
                    self._ranks[rank].cleared.set()

    async def _all_cleared(self) -> None:
        while len(self._cleared) < len(self._placement.shares):
            self._changed.clear()
            await self._changed.wait()

    async def _until(self, done: Callable[[], bool]) -> None:
        """Raises OSError when an agent reports a failure first, or none says anything for too long."""
        while not done():
            if self._failure:
                raise ConnectionError(self._failure.rstrip("."))
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), SILENCE_LIMIT)
            except asyncio.TimeoutError:
                nodes = ", ".join(self._placement.nodes)
                raise TimeoutError(f"the agents on {nodes} have said nothing for {SILENCE_LIMIT:g} s") from None

    def _made(self, streams: Mapping[tuple[str, int], AgentStream]) -> list[RemoteRank]:
        for number, share in enumerate(self._placement.shares):
            folders = dict(zip((content.path for content in self._contents), self._ready[number].contents, strict=True))
            for rank in share.ranks:
                own = {name: streams[name, rank] for name in RANK_STREAMS}
                self._ranks[rank] = RemoteRank(share.node, self._pids[rank], folders, own, self.kill)
        self._clear_with(self._cleared)  # an agent may have left meanwhile
        return [self._ranks[rank] for rank in range(len(self._spec.ranks))]
