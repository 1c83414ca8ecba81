"""The ranks of a worker group: started, watched and ended together."""

from collections.abc import Iterator, Sequence

from msx_frontend.workers.launcher import GroupSpec, LaunchedRank
from msx_frontend.workers.rank import Rank, RankEvents


class RankGroup:
    """Rank 0 is the one that requests are sent to; it leads the others."""

    def __init__(self, spec: GroupSpec, events: RankEvents) -> None:
        self.ranks = [Rank(rank.load, spec.worker, events) for rank in spec.ranks]
        self.leader = self.ranks[0]

    def __len__(self) -> int:
        return len(self.ranks)

    def __iter__(self) -> Iterator[Rank]:
        return iter(self.ranks)

    def __getitem__(self, rank: int) -> Rank:
        return self.ranks[rank]

    def told(self, rank: int, phase: str) -> None:
        """Set the phase of a rank before it can be started."""
        self.ranks[rank].phase = phase

    def begin(self, launched: Sequence[LaunchedRank]) -> None:
        """They have been started: from now on the end of each is told."""
        for rank, started in zip(self.ranks, launched, strict=True):
            rank.begin(started)

    async def connect(self) -> None:
        """Raises OSError."""
        for rank in self.ranks:
            await rank.connect()

    def load(self) -> None:
        for rank in self.ranks:
            rank.load()

    def ping(self, frame: bytes) -> None:
        for rank in self.ranks:
            rank.control.write(frame)

    def kill(self) -> None:
        for rank in self.ranks:
            rank.kill()

    async def gone(self) -> None:
        """Returns when nothing of any rank is left."""
        for rank in self.ranks:
            await rank.gone()

    @property
    def are_taken_over(self) -> bool:
        """A frontend before this one has started them."""
        return bool(self.leader.release)

    @property
    def all_loaded(self) -> bool:
        return all(rank.loaded for rank in self.ranks)

    @property
    def all_exited(self) -> bool:
        return all(rank.exited for rank in self.ranks)

    @property
    def phase(self) -> str:
        """Phase of the first rank that is not ready yet."""
        return next((rank.phase for rank in self.ranks if rank.phase), "")

    @property
    def slowest(self) -> str:
        """The phases of the ranks that are not ready, in words."""
        if len(self.ranks) == 1:
            return f"it was {self.phase}"
        waiting = [f"rank {rank.rank} was {rank.phase}" for rank in self.ranks if rank.phase]
        return ", ".join(waiting) or "all ranks were warming up"

    def named(self, rank: int | None) -> str:
        """`rank 1`, where there are several; else empty."""
        return "" if rank is None or len(self.ranks) == 1 else f"rank {rank}"
