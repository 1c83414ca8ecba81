"""The agents of one reservation: they join once, and start one generation after the other."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from msx_protocol import FrameReader, encode_frame
from msx_protocol.channel import Channel
from msx_protocol.message import WireMessage
from msx_ray.agent_messages import AgentInfo, FromAgent
from msx_ray.agent_stream import AgentStream
from msx_ray.messages import Place
from msx_ray.remote_rank import broken

log = logging.getLogger("msx.cluster")

MAX_MESSAGE = 1 << 20
"""Bytes of an agent's message at most; the longest are reasons, and folders on the node. None has a body."""


class GenerationEvents(Protocol):
    """Events of the agent of a share, for its generation."""

    number: int

    def received(self, share: int, message: FromAgent) -> None: ...

    def left(self, share: int, reason: str) -> None:
        """The agent is gone, and with it its ranks."""


class AgentLink:
    """The connection with the agent of one share."""

    def __init__(
        self,
        share: int,
        place: Place,
        received: Callable[[int, FromAgent], None],
        left: Callable[[int, Exception | None], None],
    ) -> None:
        self.place = place
        self._channel: Channel[FromAgent] = Channel(
            FromAgent,
            lambda message, body: received(share, message),
            lambda error: left(share, error),
            FrameReader(FromAgent, MAX_MESSAGE, 0),
        )

    async def connect(self, stream: AgentStream) -> None:
        await stream.connect(self._channel)

    def tell(self, message: WireMessage) -> None:
        self._channel.write(encode_frame(message))

    def close(self) -> None:
        self._channel.close()


class Crew:
    """`lost` is called with a reason when an agent has left by itself."""

    def __init__(self, places: Sequence[Place], lost: Callable[[str], None]) -> None:
        self._lost = lost
        self._closed = False
        self.links = [AgentLink(share, place, self._received, self._left) for share, place in enumerate(places)]
        self._generations: dict[int, GenerationEvents] = {}

    async def connect(self, streams: Sequence[AgentStream]) -> None:
        for link, stream in zip(self.links, streams, strict=True):
            await link.connect(stream)

    def begin(self, generation: GenerationEvents) -> None:
        self._generations[generation.number] = generation

    def forget(self, generation: GenerationEvents) -> None:
        self._generations.pop(generation.number, None)

    def tell(self, message: WireMessage) -> None:
        for link in self.links:
            link.tell(message)

    def close(self) -> None:
        """The agents end what still runs, and leave."""
        self._closed = True
        for link in self.links:
            link.close()

    def _received(self, share: int, message: FromAgent) -> None:
        if isinstance(message, AgentInfo):
            _greet(message)
        elif (generation := self._generations.get(message.generation)) is not None:
            generation.received(share, message)

    def _left(self, share: int, error: Exception | None) -> None:
        reason = broken(self.links[share].place.node, error)
        for generation in list(self._generations.values()):
            generation.left(share, reason)
        if not self._closed:
            self._lost(reason)


def _greet(agent: AgentInfo) -> None:
    log.info("agent on node %s is there (pid %d)", agent.host, agent.pid)
    if agent.niceness > 0:
        log.warning(
            "ranks on node %s have a lower priority than other programs there (niceness %d): set RAY_worker_niceness=0 "
            "in the environment of `ray start`",
            agent.host,
            agent.niceness,
        )
