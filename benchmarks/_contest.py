"""Servers that take turns under the same load, and the table of how they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import psutil

from benchmarks._client import Address
from benchmarks._figures import figure, median, paired_ratio, spread
from benchmarks._table import Table, Target
from benchmarks._wrk import Result

T = TypeVar("T")


class Load(Protocol):
    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        """Raises click.ClickException when an answer was wrong."""


@dataclass(frozen=True)
class Turn:
    result: Result
    processor: list[float]
    """µs of processor time a request, by process of the server, the busiest first: a busy machine changes it little."""


@dataclass
class Contestant:
    name: str
    address: Address
    path: str
    pid: int
    turns: dict[int, list[Turn]] = field(default_factory=dict)
    """By connections; one a round."""

    def rates(self, connections: int) -> list[float]:
        return [turn.result.per_second for turn in self.turns[connections]]

    def take(self, load: Load, connections: int, seconds: float) -> None:
        before = self._processor()
        result = load.run(self.address, self.path, connections=connections, seconds=seconds)
        spent = [used - before.get(pid, 0.0) for pid, used in self._processor().items()]
        turn = Turn(result, sorted((seconds * 1e6 / result.requests for seconds in spent), reverse=True))
        self.turns.setdefault(connections, []).append(turn)

    def _processor(self) -> dict[int, float]:
        """Process id to seconds."""
        server = psutil.Process(self.pid)
        times = {process.pid: process.cpu_times() for process in [server, *server.children(recursive=True)]}
        return {pid: time.user + time.system for pid, time in times.items()}


def play_round(load: Load, contestants: Sequence[Contestant], connections: Sequence[int], seconds: float) -> None:
    for count in connections:
        for contestant in contestants:
            contestant.take(load, count, seconds)


def rotated(contestants: list[T], by: int) -> list[T]:
    """Nobody is always the first after a pause."""
    start = by % len(contestants)
    return contestants[start:] + contestants[:start]


def table(
    title: str,
    contestants: Sequence[Contestant],
    connections: int,
    peers: Sequence[str],
    *,
    unit: str = "request",
    latency: str = "",
) -> Table:
    """A row a server; the last columns are its ratios to those of `peers` that took part. `latency`: what p50 is of."""
    present = [one for one in contestants if one.name in peers]
    rows = []
    for contestant in contestants:
        rates, turns = contestant.rates(connections), contestant.turns[connections]
        p50 = median([turn.result.p50 for turn in turns]) / 1000
        p99 = median([turn.result.p99 for turn in turns]) / 1000
        row = [contestant.name, figure(median(rates)), spread(rates), figure(p50), figure(p99), processor(turns)]
        rows.append([*row, *(_ratio(rates, peer.rates(connections)) for peer in present)])
    columns = ("server", f"{unit}s/s", "lowest – highest", f"{latency}p50 ms", f"{latency}p99 ms", f"CPU µs/{unit}")
    return Table(title, [*columns, *(f"of {peer.name}" for peer in present)], rows)


def processor(turns: Sequence[Turn]) -> str:
    """The sum, and its parts by process; those that take next to nothing are left out."""
    parts = [median(part) for part in zip(*(turn.processor for turn in turns), strict=False)]
    shown = [f"{part:.0f}" for part in parts if part >= 0.02 * sum(parts)]
    return f"{sum(parts):.0f} = {' + '.join(shown)}" if len(shown) > 1 else f"{sum(parts):.0f}"


def targets(
    contestants: Sequence[Contestant],
    connections: int,
    ours: Sequence[str],
    peer: str,
    least: float,
    load: str,
    *,
    unit: str = "request",
) -> list[Target]:
    """That each of ours has `least` times the rate of the peer; nothing where the peer did not take part."""
    by_name = {one.name: one for one in contestants}
    if peer not in by_name:
        return []
    theirs = by_name[peer].rates(connections)
    middles = {name: paired_ratio(by_name[name].rates(connections), theirs)[0] for name in ours}
    return [
        Target(f"{name}: {unit}s/s of {peer}, {load}", f"{middle:.2f}", f"≥ {least:g}", middle >= least)
        for name, middle in middles.items()
    ]


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    middle, low, high = paired_ratio(ours, theirs)
    return f"{middle:.2f} ({low:.2f} – {high:.2f})"
