"""Follows the server's messages, until their connection ends: then nothing of the server is left on this node."""

import asyncio
import os

from msx_protocol import encode_frame
from msx_protocol.channel import Channel
from msx_protocol.message import WireMessage
from msx_ray.agent.generation import NodeGeneration
from msx_ray.agent.invitation import Invitation
from msx_ray.agent.run_folder import remove_deserted
from msx_ray.agent_messages import AgentInfo, Begin, Hello, Meet, ToAgent
from msx_ray.dial import dial


class _Link(Channel[ToAgent]):
    """The connection with the server. `address` is this node's own, by which it reaches the server."""

    address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.address = transport.get_extra_info("sockname")[0]


class Agent:
    def __init__(self, invitation: Invitation) -> None:
        self._invitation = invitation
        self._channel = _Link(ToAgent, self._received, lambda error: self._left.set())
        self._left = asyncio.Event()
        self._generation: NodeGeneration | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Raises ConnectionError when the server cannot be reached."""
        hello = Hello(self._invitation.key, "agent", self._invitation.share)
        await dial(self._invitation.server, hello, self._channel)
        self._tell(AgentInfo(self._invitation.node, os.getpid(), os.getpriority(os.PRIO_PROCESS, 0)))
        await asyncio.to_thread(remove_deserted)
        await self._left.wait()
        if self._generation is not None:
            await self._generation.end()
        await asyncio.gather(*self._ending)

    def _received(self, message: ToAgent, body: bytes) -> None:
        if isinstance(message, Begin):
            self._generation = NodeGeneration(message, self._invitation, self._channel.address, self._tell)
        elif self._generation is not None and self._generation.number == message.generation:
            if isinstance(message, Meet):
                self._generation.meet(message)
            else:
                self._end(self._generation)

    def _end(self, generation: NodeGeneration) -> None:
        self._generation = None
        task = asyncio.create_task(generation.end(), name=f"end-{generation.number}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _tell(self, message: WireMessage) -> None:
        self._channel.write(encode_frame(message))
