"""Start of the ranks of a worker group, wherever they run: the group above knows no processes and no machines."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from msx_core.replies.stream_credit import StreamBuffers
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.nodes import GroupPlacement
from msx_frontend.workers.confinement import FREE, Confinement
from msx_frontend.workers.handed_group import Handing
from msx_frontend.workers.segments.allowance import SegmentLimits, SegmentSocket
from msx_protocol import Load


@dataclass(frozen=True)
class RankSpec:
    """Specification from which one rank is started.

    `env` lacks what only the launcher knows: where the ranks meet (MASTER_ADDR, MASTER_PORT), and the rank's folders.
    """

    load: Load
    env: Mapping[str, str]
    confinement: Confinement = FREE


@dataclass(frozen=True)
class GroupSpec:
    """All that a generation of a group is started from. Times in seconds."""

    ranks: tuple[RankSpec, ...]
    startup_timeout: float
    response_timeout: float
    max_concurrent: int
    """Requests at once on an async handler."""
    slots: int = 1
    """Requests at once on a continuous handler."""
    rank_skew_timeout: float = 10.0
    """How long one rank may still run after the others have ended a call, or let them wait in a collective."""

    max_memory: int | None = None
    """Bytes that one rank may take."""

    meets: bool = False
    """Its ranks meet at an address, as those of torchrun: so does a group of one rank by `parallelType`."""

    worker: int = 0
    """The replica's number."""
    generation: int = 1
    """Which of the replica's groups it is."""

    python: str = sys.executable

    stream_buffers: StreamBuffers = field(default_factory=StreamBuffers)
    """Buffers of the streamed replies of all groups in the server."""

    segments: SegmentLimits | None = None
    """Shared memory in which large replies of a stage may stand, if any; it reads that of others."""

    placement: GroupPlacement | None = None
    """Where its ranks run in a cluster; None: on this machine."""

    lease: Lease | None = None
    """Its devices; None where nobody may ask for them again."""

    told: Callable[[int, str], None] = field(default=lambda rank, phase: None, compare=False)
    """Called with a rank and what is done before it can be started: its archive is fetched, say."""
    resumed: Callable[[Handing], None] = field(default=lambda handing: None, compare=False)
    """Called during the launch where the group runs already: a frontend before this one hands it over."""

    part: str = ""
    """Stage that it runs, as `model/stage`, by which it is found again; "" for a model without stages."""

    @property
    def name(self) -> list[Any]:
        """Model or stage, version and place, by which another frontend asks for the group."""
        return [self.part or self.load.model_name, self.load.model_version, self.load.place]

    @property
    def load(self) -> Load:
        return self.ranks[0].load


class ExitStatus(NamedTuple):
    """How the process of a rank ended: its exit code, or the number of the signal, negative."""

    code: int
    lost: str = ""
    """Why nobody knows how it ended, a sentence without its full stop: its node is out of reach."""


class RankStatus(NamedTuple):
    """Bytes: `memory` is resident, `own_memory` is what other processes do not share; 0 when the rank is gone."""

    host: str = ""
    pid: int | None = None
    """None unless there is a process of this number that is the rank's: 0 means the caller's own group to kill(1)."""
    memory: int = 0
    own_memory: int = 0


class ByteStream(Protocol):
    """One end of a connection to a rank."""

    async def connect(self, reader: asyncio.BaseProtocol) -> None:
        """Give `reader` what the rank writes, as asyncio does: `connection_made` with the transport, then bytes, at
        last `connection_lost`. Raises OSError.
        """


class LaunchedRank(Protocol):
    """A rank that has been started. Its streams reach their end when it has ended."""

    @property
    def pid(self) -> int:
        """Number of the process that was started; `describe` has it only while there is that process."""

    @property
    def data(self) -> ByteStream:
        """Frames of requests and replies, in both directions."""

    @property
    def control(self) -> ByteStream:
        """Frames of pings, cancels and credit, in both directions."""

    @property
    def segments(self) -> SegmentSocket | None:
        """The socket of a stage's rank 0 that runs on this machine: who takes it closes it. A launcher offers one to
        every stage of a model, also where it grants no segments, or to none: then large values travel in frames."""

    @property
    def stdout(self) -> ByteStream: ...

    @property
    def stderr(self) -> ByteStream: ...

    @property
    def ended(self) -> asyncio.Future[ExitStatus]:
        """Resolved once, when the rank and all that it has started are gone. What it wrote may still be read."""

    def adapt(self, load: Load) -> Load:
        """The message with the folders of the rank's own machine."""

    def cut(self, error: Exception) -> None:
        """Its data connection broke: end it, too."""

    def kill(self) -> None:
        """End the rank and all that it has started, at once. `ended` tells when they are gone. Idempotent."""

    async def gone(self) -> None:
        """Returns when nothing of the rank is left: no process, connection or folder."""

    def describe(self) -> RankStatus: ...

    async def memory_taken(self) -> int:
        """Bytes of the rank, and of all that it has started, that other processes do not share."""


@runtime_checkable
class RankHandsOver(Protocol):
    """A rank that another frontend may take over.

    `release` is the server's that has started it, where another one has taken it over; else empty. `old`: it is to be
    replaced by another one."""

    release: str
    old: bool

    def hand_over(self) -> None:
        """Forget it without its end: another process has its connections, and waits for its end."""


class Launcher(Protocol):
    async def launch(self, spec: GroupSpec) -> Sequence[LaunchedRank]:
        """Start all ranks of a generation, in the order of their numbers; rank 0 has a plan stream to each other one.

        Raises OSError when one of them cannot be started. After an error, and when it is cancelled, none is left.
        """
