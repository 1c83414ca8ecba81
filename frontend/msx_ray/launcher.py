"""The launcher that starts the ranks of a group on the nodes of a cluster (`Launcher`)."""

import asyncio
import contextlib
import ssl
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import count
from pathlib import Path

from msx_frontend.plugins.launchers import GroupSpec, is_venv
from msx_ray.agent_messages import RANK_STREAMS, NodeContent
from msx_ray.agent_stream import AgentStream
from msx_ray.certificate import Identity
from msx_ray.cluster import Cluster
from msx_ray.content_server import ContentServer
from msx_ray.content_source import Offered, offer
from msx_ray.crew import Crew
from msx_ray.door import Door
from msx_ray.listing import COMPILED, REQUIREMENTS
from msx_ray.remote_generation import RemoteGeneration
from msx_ray.remote_rank import RemoteRank
from msx_ray.reservation import Reservation
from msx_ray.route import own_address
from msx_ray.source_limits import SourceLimits
from msx_ray.tls import new_identity, server_context

_numbers = count(1)


class ClusterLauncher:
    """`address`: where agents reach this server, which it listens at while they come; None: by the route to the
    cluster. `join_limit`: seconds that the agents of a reservation have to connect."""

    def __init__(
        self, cluster: Cluster, address: str | None = None, join_limit: float = 60.0, limits: SourceLimits | None = None
    ) -> None:
        self._cluster = cluster
        self._given = address
        self._join_limit = join_limit
        self._crews: dict[str, Crew] = {}
        self._joining: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Locks by reservation: two launches at once share one crew."""
        self._limits = limits or SourceLimits()
        self._identity: Identity | None = None
        self._context: ssl.SSLContext | None = None
        self._making = asyncio.Lock()

    async def launch(self, spec: GroupSpec) -> Sequence[RemoteRank]:
        """See `Launcher.launch`."""
        placement = spec.placement
        assert placement is not None, "a group in a cluster has a placement"
        reservation = self._reservation(placement.id)
        crew = await self._crew(reservation)
        offered = await asyncio.to_thread(_offered, spec)
        contents = [*(one.content for one in offered), *_compiled(spec, offered)]
        source = ContentServer(offered)
        generation = RemoteGeneration(next(_numbers), spec, placement, crew)
        streams = [(name, rank) for name in RANK_STREAMS for rank in range(len(spec.ranks))]
        agents = [share.address for share in placement.shares]
        door = Door(await self._tls(), streams, source.take, agents=agents, limits=self._limits)
        try:
            port = await door.open(self._address)
            return await generation.start(door, port, contents)
        except BaseException:
            door.close()
            await _whole(generation.clear())
            raise
        finally:
            source.close()

    def _reservation(self, id: str) -> Reservation:
        """Raises ConnectionError when it has been lost."""
        for one in self._cluster.reservations:
            if one.id == id and not one.lost:
                return one
        raise ConnectionError("its place in the cluster is gone")

    async def _crew(self, reservation: Reservation) -> Crew:
        async with self._joining[reservation.id]:
            if (known := self._crews.get(reservation.id)) is None:
                known = await self._new_crew(reservation)
        return known

    async def _new_crew(self, reservation: Reservation) -> Crew:
        """The reservation may be released at any moment: then the agents leave, and nobody waits for them."""
        context = await self._tls()
        self._reservation(reservation.id)
        crew = Crew(reservation.places, reservation.lose)
        expected = [("agent", share) for share in range(len(reservation.places))]
        door = Door(context, expected, agents=[place.address for place in reservation.places], limits=self._limits)
        reservation.attach(CrewAtDoor(crew, door, partial(self._forget, reservation.id)))
        self._crews[reservation.id] = crew
        try:
            port = await door.open(self._address)
            identity = self._identity
            assert identity is not None
            self._cluster.start_agents(reservation, [self._address], port, door.key, identity.pin)
            await crew.connect(await self._joined(door, reservation))
        except BaseException:
            self._crews.pop(reservation.id, None)
            crew.close()
            raise
        finally:
            door.close()
        return crew

    async def _joined(self, door: Door, reservation: Reservation) -> list[AgentStream]:
        done, _ = await asyncio.wait({door.arrived}, timeout=self._join_limit)
        if not done:
            nodes = ", ".join(dict.fromkeys(place.node for place in reservation.places))
            reservation.lose(
                f"not all agents on {nodes} have connected with {self._address} within {self._join_limit:g} s "
                "(cluster_start_timeout): do the nodes reach this address (cluster_agent_address)?"
            )
            raise ConnectionError(reservation.lost)
        streams = door.arrived.result()
        return [streams["agent", share] for share in range(len(reservation.places))]

    @property
    def _address(self) -> str:
        """Raises OSError."""
        return self._given or own_address(self._cluster.gcs)

    def _forget(self, id: str) -> None:
        self._joining.pop(id, None)
        self._crews.pop(id, None)

    async def _tls(self) -> ssl.SSLContext:
        async with self._making:
            if self._context is None:
                self._identity = await new_identity()
                self._context = server_context(self._identity)
        return self._context


class CrewAtDoor:
    """See `ReservationAgents`: agents that have joined, or that are awaited at a door. `forget` is called when they
    leave."""

    def __init__(self, crew: Crew, door: Door, forget: Callable[[], None]) -> None:
        self._crew, self._door, self._forget = crew, door, forget

    def place_released(self) -> None:
        self._forget()
        self._crew.close()
        self._door.close("its place in the cluster was given back")

    def place_lost(self, reason: str) -> None:
        self._door.close(reason)


async def _whole(clearing: Coroutine[object, object, None]) -> None:
    """Go on to its end, which is bounded, also where the launch is cancelled again and again."""
    task = asyncio.ensure_future(clearing)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    task.result()


def _offered(spec: GroupSpec) -> list[Offered]:
    """Blocks. Raises OSError."""
    load = spec.load
    if is_venv(Path(spec.python)):
        raise OSError(
            "useVenv: true makes a virtual environment on this machine: leave it out for a model in a cluster"
        )
    made = [offer(Path(load.model_dir))]
    if load.site_dir is not None:
        made.append(offer(Path(load.site_dir), REQUIREMENTS))
    return made


def _compiled(spec: GroupSpec, offered: Sequence[Offered]) -> list[NodeContent]:
    """Each node has a folder of its own for what MindSpore compiles."""
    folder = spec.load.cache_dir
    return [] if folder is None else [NodeContent(offered[0].content.digest, folder, COMPILED)]
