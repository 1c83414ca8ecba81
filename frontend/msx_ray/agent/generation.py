"""One generation on this node: its contents are fetched, the ranks meet, run and end."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping

from msx_frontend.plugins.accelerators import Device, accelerator_of
from msx_frontend.plugins.ranks import free_port
from msx_protocol.message import WireMessage
from msx_ray.agent.collective_ports import CollectivePorts
from msx_ray.agent.contents import folder_of
from msx_ray.agent.invitation import Invitation
from msx_ray.agent.ranks import PlanSockets, RankProcess, rank_environment
from msx_ray.agent.relay import Relay
from msx_ray.agent.run_folder import RunFolder
from msx_ray.agent_messages import CONTENT, Begin, CannotStart, Cleared, Hello, Meet, Progress, Ready
from msx_ray.agent_stream import AgentStream
from msx_ray.certificate import make_identity
from msx_ray.dial import DialTarget, dial
from msx_ray.door import Door, StreamName
from msx_ray.tls import server_context

GONE_LIMIT = 30.0
"""Seconds that killed processes have to be gone."""

PLAN_LIMIT = 60.0
"""Seconds that the agents of other ranks have to connect with the one of rank 0, once all are ready."""


class NodeGeneration:
    """`tell` sends the server a message. `end` may be called at any time."""

    def __init__(self, begin: Begin, invitation: Invitation, address: str, tell: Callable[[WireMessage], None]) -> None:
        """`address`: where other agents reach this node."""
        self.number = begin.generation
        self._begin, self._invitation, self._address, self._tell = begin, invitation, address, tell
        self._server = DialTarget(invitation.addresses, begin.port, invitation.fingerprint)
        self._ranks = [RankProcess(begin, start, self._server, tell) for start in begin.ranks]
        self._numbers = [start.rank for start in begin.ranks]
        self._leads = 0 in self._numbers
        self._plans = PlanSockets()
        self._door: Door | None = None
        self._folders: list[str] = []
        self._run_folder: RunFolder | None = None
        self._ports: CollectivePorts | None = None
        self._accelerator = accelerator_of(invitation.resource)()
        self._met = False
        self._task = asyncio.create_task(self._prepare(), name=f"prepare-{self.number}")

    def meet(self, meet: Meet) -> None:
        """Once, and after what was begun before: `end` ends both."""
        if not self._met:
            self._met = True
            self._task = asyncio.create_task(self._start(meet, self._task), name=f"start-{self.number}")

    async def end(self) -> None:
        """Nothing is left of it afterwards; the server is told."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._door is not None:
            self._door.close()
        self._plans.close()
        for rank in self._ranks:
            rank.kill()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(rank.gone() for rank in self._ranks)), GONE_LIMIT)
        if self._ports is not None:
            self._ports.close()
        if self._run_folder is not None:
            await asyncio.to_thread(self._run_folder.remove)
        self._tell(Cleared(self.number))

    async def _prepare(self) -> None:
        try:
            self._folders = [await folder_of(one, self._dial_content, self._progress) for one in self._begin.contents]
            ready = Ready(self.number, self._folders, self._address)
            self._tell(await self._meeting(ready) if self._leads else ready)
        except OSError as error:
            self._failed(error)

    async def _meeting(self, ready: Ready) -> Ready:
        """Rank 0 is here: the ranks meet at this node, and the others' plans come here."""
        ready.master_port = free_port(self._address)
        others = [("plan", rank) for rank in range(1, self._begin.world_size) if rank not in self._numbers]
        if others:
            identity = await asyncio.to_thread(make_identity)
            self._door = Door(server_context(identity), others, key=self._begin.key, agents=self._begin.agents)
            ready.plan_port, ready.plan_fingerprint = await self._door.open(self._address), identity.pin
        return ready

    async def _start(self, meet: Meet, preparing: asyncio.Task[None]) -> None:
        await preparing
        try:
            await self._connect_plans(meet)
            ports = self._collective_ports()
            self._run_folder = RunFolder(self._begin.name)
            meeting = {"MASTER_ADDR": meet.master_address, "MASTER_PORT": str(meet.master_port)}
            for rank, start in zip(self._ranks, self._begin.ranks, strict=True):
                env = rank_environment(start, {**ports, **meeting}, self._shown, self._folders[0])
                work_dir = self._run_folder.path / f"r{start.rank}"
                await rank.start(sys.executable, env, work_dir, self._plans.of(start.rank))
            self._plans.close()
        except OSError as error:
            self._failed(error)

    async def _connect_plans(self, meet: Meet) -> None:
        """Connect in the order of the ranks: rank 0 knows the others by it."""
        arrived = await self._arrived(self._door) if self._door is not None else {}
        for rank in range(1, self._begin.world_size):
            if self._leads and rank in self._numbers:
                self._plans.direct(rank)
            elif self._leads:
                near, far = Relay.pair()
                await self._plans.relayed(0, near)
                await arrived["plan", rank].connect(far)
            elif rank in self._numbers:
                near, far = Relay.pair()
                await self._plans.relayed(rank, near)
                target = DialTarget([meet.master_address], meet.plan_port, meet.plan_fingerprint)
                await dial(target, Hello(self._begin.key, "plan", rank=rank), far)

    async def _arrived(self, door: Door) -> Mapping[StreamName, AgentStream]:
        """Raises OSError."""
        if not (await asyncio.wait({door.arrived}, timeout=PLAN_LIMIT))[0]:
            raise TimeoutError(
                f"the agents of the group's other nodes have not connected with {self._address} within "
                f"{PLAN_LIMIT:g} s: check that the nodes reach each other"
            )
        return door.arrived.result()

    @property
    def _shown(self) -> Mapping[str, str]:
        """The variables that show the share's devices."""
        devices = [Device(name, self._invitation.resource) for name in self._invitation.devices]
        return self._accelerator.environment(devices) if devices else {}

    def _collective_ports(self) -> Mapping[str, str]:
        """Variables of a group that has devices here: as on one machine, also of one process with several."""
        devices = self._invitation.devices
        if devices and max(self._begin.world_size, len(devices)) > 1:
            self._ports = CollectivePorts(self._accelerator)
        return self._ports.environment if self._ports is not None else {}

    def _progress(self, phase: str) -> None:
        self._tell(Progress(self.number, phase))

    async def _dial_content(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        return await dial(self._server, Hello(self._begin.key, CONTENT, self._invitation.share), protocol)

    def _failed(self, error: OSError) -> None:
        self._tell(CannotStart(self.number, f"Node {self._invitation.node}: {error}."))
