"""Figures of a served device beside those of its calls in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.reports.figures import figure, median, spread
from benchmarks.reports.table import Table
from benchmarks.throughput.overlap import Calls, share_of_full

COLUMNS = (
    "server",
    "requests/s",
    "of the loop",
    "lowest – highest",
    "full batches",
    "in full calls",
    "p50 of one, ms",
    "more than the call, ms",
)
EDGE = 0.5
"""Seconds at the begin and at the end of a load, whose batches are not full."""


@dataclass(frozen=True)
class Turn:
    """A server's turn under many connections and under one, and the same calls of its device in a loop.

    Seconds; `bare` and `alone` of each call, with a full batch and with one request.
    """

    rate: float
    p50: float
    bare: Sequence[float]
    alone: Sequence[float]
    calls: Calls


@dataclass
class Record:
    """All turns of a server in one setting."""

    name: str
    batch: int
    turns: list[Turn] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Ratios to what the loop makes with full batches, one a round."""
        return [turn.rate * sum(turn.bare) / len(turn.bare) / self.batch for turn in self.turns]

    @property
    def full(self) -> float:
        """Least share of batches that were full, of all rounds."""
        return min(full_share(turn.calls, self.batch) for turn in self.turns)

    @property
    def busy(self) -> float:
        """Median of the share of the time in which a call with a full batch ran, or waited at its end."""
        return median(share_of_full(turn.calls, self.batch, EDGE)[0] for turn in self.turns)

    @property
    def more(self) -> float:
        """Seconds of a lone request beyond the call of its device."""
        return median(turn.p50 - median(turn.alone) for turn in self.turns)

    def row(self) -> Sequence[str]:
        rates, p50 = [turn.rate for turn in self.turns], median(turn.p50 for turn in self.turns)
        return (
            self.name,
            figure(median(rates)),
            f"{median(self.ratios):.3f}",
            spread(self.ratios),
            f"{self.full:.1%}",
            f"{self.busy:.1%}",
            figure(1000 * p50),
            figure(1000 * self.more),
        )


def full_share(calls: Calls, batch: int, edge: float = EDGE) -> float:
    """The share of calls with a full batch, but for those at the begin and at the end of the load."""
    first, last = calls[0][0] + edge, calls[-1][1] - edge
    sizes = [size for begin, end, size in calls if begin >= first and end <= last]
    return sum(size == batch for size in sizes) / len(sizes)


def table(title: str, records: Sequence[Record]) -> Table:
    return Table(title, COLUMNS, [record.row() for record in records])
