"""Messages between `start_servable` and `startup_agents`, two scripts of one user on one machine.

They meet at an abstract Unix socket that is named after the port of `distributed_address`. The kernel tells both sides
who the other one is, and nobody but the same user is listened to: nothing can be reached over a network, and nothing is
left on disk. A message is its length in 4 bytes and its MessagePack.
"""

import os
import select
import socket
import struct

import msgspec

from ..listen_address import check_host_and_port

MOST_BYTES = 4 << 20
"""Bytes of one message: paths of 10,000 ranks fit."""
TIMEOUT = 10
"""Seconds in which a message that has begun must be there, or be taken."""
_CREDENTIALS = struct.Struct("3i")


class RankFiles(msgspec.Struct, frozen=True):
    """Absolute paths: the model of one rank, one MindIR a subgraph, and its groups."""

    models: list[str]
    groups: list[str]


class AgentConfiguration(msgspec.Struct, frozen=True, tag=True):
    """Host and device of each rank, for an agent that has connected."""

    servable: str
    places: list[tuple[str, int]]
    stage_size: int


class AgentRegistration(msgspec.Struct, frozen=True, tag=True):
    """Ranks of an agent, and their files."""

    ranks: dict[int, RankFiles]
    dec_key: bytes | None = None
    dec_mode: str = "AES-GCM"


class AgentRefusal(msgspec.Struct, frozen=True, tag=True):
    """Failure of an agent's script."""

    text: str


class AgentOutcome(msgspec.Struct, frozen=True, tag=True):
    """Outcome for an agent: the servable is ready, or the text says why it is not."""

    error: str = ""


AgentMessage = AgentConfiguration | AgentRegistration | AgentRefusal | AgentOutcome
_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AgentMessage] = msgspec.msgpack.Decoder(AgentMessage)


class LinkError(OSError):
    """The other side is another user, has gone, or says what is not a message."""


def socket_name(address: str) -> str:
    """Name of the socket for `host:port`. Raises RuntimeError."""
    check_host_and_port(address, "Distributed gRPC")
    return f"\0msx-serve/distributed/{int(address.rpartition(':')[2])}"


def prepare(sock: socket.socket) -> None:
    """The kernel's time-outs, which do not disturb a thread that waits for a message while another one sends.

    Raises LinkError unless the process at the other end belongs to this process's user.
    """
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", TIMEOUT, 0))
    _, user, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if user != os.geteuid():
        raise LinkError(f"the process at the other end belongs to user {user}, not to user {os.geteuid()}")


def send(sock: socket.socket, message: AgentMessage) -> None:
    """Raises OSError."""
    data = _encoder.encode(message)
    if len(data) > MOST_BYTES:
        raise LinkError(f"a message of {len(data)} bytes; {MOST_BYTES} are the most")
    sock.sendall(struct.pack("<I", len(data)) + data)


def receive(sock: socket.socket) -> AgentMessage | None:
    """The next message, waited for without a limit; None at the end. Raises OSError."""
    waiting = select.poll()
    waiting.register(sock, select.POLLIN)
    waiting.poll()
    first = sock.recv(1)
    if not first:
        return None
    (length,) = struct.unpack("<I", first + _exactly(sock, 3))
    if length > MOST_BYTES:
        raise LinkError(f"a message of {length} bytes; {MOST_BYTES} are the most")
    try:
        return _decoder.decode(_exactly(sock, length))
    except msgspec.DecodeError as error:
        raise LinkError(f"what came is not a message: {error}") from None


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = sock.recv(min(count - len(data), 1 << 16))
        if not piece:
            raise LinkError("the other side has gone in the middle of a message")
        data += piece
    return bytes(data)
