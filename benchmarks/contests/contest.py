"""Servers that take turns under the same load, and the table of how they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

import click
import psutil

from benchmarks.load.client import Address
from benchmarks.load.result import Result
from benchmarks.load.started import StartedLoad
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Table
from benchmarks.servers.family import family_of

T = TypeVar("T")


class Load(Protocol):
    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        """Raises click.ClickException when an answer was wrong."""


@runtime_checkable
class LoadProgram(Load, Protocol):
    def start(self, address: Address, path: str, *, connections: int, seconds: float) -> StartedLoad: ...


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
    """Turns by connections; one a round."""
    warm_ups: int = 1
    """A factor of the warm-up's length."""
    restless: bool = False
    """It uses the processor while it is idle, and is therefore stopped (SIGSTOP) during others' turns."""

    def rates(self, connections: int) -> list[float]:
        return [turn.result.per_second for turn in self.turns[connections]]

    def latencies(self, connections: int) -> list[float]:
        """The p50 of each round, in ms."""
        return [turn.result.p50 / 1000 for turn in self.turns[connections]]

    def costs(self, connections: int) -> list[float]:
        """µs of processor time a request of all its processes, one a round."""
        return [sum(turn.processor) for turn in self.turns[connections]]

    def warm_up(self, load: Load, connections: int, seconds: float) -> None:
        self.run(load, connections, self.warm_ups * seconds)
        self._sleep()

    def take(self, load: Load, connections: int, seconds: float) -> None:
        self.wake()
        before = self.processor()
        self.add(self.run(load, connections, seconds), connections, before)
        self._sleep()

    def add(self, result: Result, connections: int, before: dict[int, float]) -> None:
        """A turn. `before`: what `processor` returned when it began."""
        spent = [used - before.get(pid, 0.0) for pid, used in self.processor().items()]
        turn = Turn(result, sorted((seconds * 1e6 / result.requests for seconds in spent), reverse=True))
        self.turns.setdefault(connections, []).append(turn)

    def processor_seconds(self) -> float:
        """Processor time of all its processes since they were started."""
        return sum(self.processor().values())

    def processor(self) -> dict[int, float]:
        """Process id to seconds."""
        times = {process.pid: process.cpu_times() for process in self.family()}
        return {pid: time.user + time.system for pid, time in times.items()}

    def family(self) -> list[psutil.Process]:
        """The server, and all processes below it, or beside it below its supervisor."""
        return family_of(psutil.Process(self.pid))

    def wake(self) -> None:
        if self.restless:
            for process in self.family():
                process.resume()

    def run(self, load: Load, connections: int, seconds: float) -> Result:
        """Run the load once; it is no turn. Raises click.ClickException."""
        try:
            return load.run(self.address, self.path, connections=connections, seconds=seconds)
        except click.ClickException as error:
            raise click.ClickException(f"{self.name}, {at(connections)}: {error.message}") from None

    def _sleep(self) -> None:
        if self.restless:
            for process in self.family():
                process.suspend()


def rotated(contestants: list[T], by: int) -> list[T]:
    """Rotates, so that each is the first after a pause in turn."""
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
    """A row a server; the last columns are its ratios to those of the `peers` present. `latency`: the name of p50."""
    present = [one for one in contestants if one.name in peers]
    rows = []
    for contestant in contestants:
        rates, turns = contestant.rates(connections), contestant.turns[connections]
        p50 = median([turn.result.p50 for turn in turns]) / 1000
        p99 = median([turn.result.p99 for turn in turns]) / 1000
        row = [contestant.name, figure(median(rates)), spread(rates), figure(p50), figure(p99), processor(turns)]
        rows.append([*row, *(ratio(rates, peer.rates(connections)) for peer in present)])
    columns = ("server", per_second(unit), "lowest – highest", f"{latency}p50 ms", f"{latency}p99 ms", f"CPU µs/{unit}")
    return Table(title, [*columns, *(f"of {peer.name}" for peer in present)], rows)


def processor(turns: Sequence[Turn]) -> str:
    """The sum, and its parts by process; those that take next to nothing are left out."""
    parts = [median(part) for part in zip(*(turn.processor for turn in turns), strict=False)]
    shown = [f"{part:.0f}" for part in parts if part >= 0.02 * sum(parts)]
    return f"{sum(parts):.0f} = {' + '.join(shown)}" if len(shown) > 1 else f"{sum(parts):.0f}"


def bars(
    name: str, title: str, contestants: Sequence[Contestant], connections: Sequence[int], *, unit: str = "request"
) -> Bars:
    """Their rates, a panel for each number of connections, the fewest first."""
    panels = {at(count): {one.name: one.rates(count) for one in contestants} for count in sorted({*connections})}
    caption = f"The {unit}s that each server answers in a second, at the same load in turn; longer is better."
    return Bars(name, title, per_second(unit), panels, caption)


def per_second(unit: str) -> str:
    """Symbols (MB) have no plural."""
    return f"{unit}/s" if unit.isupper() else f"{unit}s/s"


def at(connections: int) -> str:
    return several(connections, "connection")


def several(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count > 1 else ''}"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The median of the rounds' ratios, and the lowest and highest."""
    middle, low, high = paired_ratio(ours, theirs)
    return f"{middle:.2f} ({low:.2f} – {high:.2f})"
