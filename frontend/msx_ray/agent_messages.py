"""Messages between the server and the agents on nodes: frames over TLS. No message has an instant of a clock."""

import msgspec

from msx_protocol.message import WireMessage

KEY_SIZE = 32
"""Bytes of a key, in hex digits twice as many."""


class Hello(msgspec.Struct, frozen=True):
    """The first bytes of each connection: JSON, padded with blanks to `HELLO` bytes. The answer is `WELCOME`.

    `stream`: agent, data, control, stdout, stderr, plan or content.
    """

    key: str
    stream: str
    share: int = 0
    rank: int = 0


RANK_STREAMS = ("data", "control", "stdout", "stderr")
"""Streams of a rank to the server."""
CONTENT = "content"
"""The kind of a stream on which an agent asks for contents."""

HELLO = 256
WELCOME = b"\x06"


class NodeContent(msgspec.Struct, frozen=True):
    """A folder that a rank needs on its node. `digest` names its content, `path` is where the server has it."""

    digest: str
    path: str
    kind: str = "archive"
    """archive, or requirements."""


class RankStart(msgspec.Struct, frozen=True):
    rank: int
    env: dict[str, str]


# -- to an agent --


class Begin(WireMessage, tag=1):
    """Start a generation of the share's ranks: prepare, then Ready. `key` opens the streams of this generation. The
    agent that has rank 0 says where the ranks meet. `agents` are the addresses of all agents of the group."""

    generation: int
    name: str
    key: str
    port: int
    ranks: list[RankStart]
    contents: list[NodeContent]
    world_size: int
    agents: list[str] = []


class Meet(WireMessage, tag=2):
    """All agents are ready: start the processes. `plan_fingerprint` is of the certificate of rank 0's agent."""

    generation: int
    master_address: str
    master_port: int
    plan_port: int = 0
    plan_fingerprint: str = ""


class Kill(WireMessage, tag=3):
    """End the ranks of the generation. Answered by Ended for each that was started, then Cleared."""

    generation: int


# -- from an agent --


class AgentInfo(WireMessage, tag=20):
    """The first message of an agent. `niceness` is what its ranks inherit: above 0 they yield to other programs."""

    host: str
    pid: int
    niceness: int = 0


class Progress(WireMessage, tag=21):
    """Progress of the agent before it is ready, in words: `fetching the archive (120 of 500 MB)`."""

    generation: int
    phase: str


class Ready(WireMessage, tag=22):
    """`contents` are the folders on the node, in the order of Begin's."""

    generation: int
    contents: list[str]
    address: str = ""
    master_port: int = 0
    plan_port: int = 0
    plan_fingerprint: str = ""


class CannotStart(WireMessage, tag=23):
    """The ranks cannot be started here. `reason` is a sentence that names the node."""

    generation: int
    reason: str


class Started(WireMessage, tag=24):
    generation: int
    rank: int
    pid: int


class Ended(WireMessage, tag=25):
    """The rank and all that it has started are gone. A negative code is the signal."""

    generation: int
    rank: int
    code: int


class RankUsage(WireMessage, tag=26):
    """Bytes, each second: resident, and what other processes do not share."""

    generation: int
    rank: int
    memory: int
    own_memory: int


class Cleared(WireMessage, tag=27):
    """Nothing of the generation is left on the node: no process, connection or folder."""

    generation: int


ToAgent = Begin | Meet | Kill
FromAgent = AgentInfo | Progress | Ready | CannotStart | Started | Ended | RankUsage | Cleared
