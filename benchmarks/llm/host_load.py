"""A load of streams on the host's part of the engine, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.contests.before import Pair
from benchmarks.contests.contest import several
from benchmarks.reports.figures import figure, median, paired_ratio
from benchmarks.reports.table import Table, Target
from benchmarks.servers.msx import Server

MOST_MS = {16: 0.5, 64: 1.5, 256: 5.0}
"""The promise, where steps wait for no device: ms of the worker's processor time a step, by the number of texts."""
MOST_MICROS = 15.0
"""The same: of the frontend's, a token."""
COLUMNS = ("worker, ms a step", "worker, µs a token", "frontend, µs a token", "tokens/s", "between tokens p99, ms")


@dataclass
class HostFigures:
    """Figures of one load, one a round."""

    worker_ms: list[float] = field(default_factory=list)
    worker_micros: list[float] = field(default_factory=list)
    frontend_micros: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)

    @property
    def all(self) -> list[list[float]]:
        return [self.worker_ms, self.worker_micros, self.frontend_micros, self.rate, self.p99_ms]


@dataclass
class HostLoad:
    """So many texts of one kind, of the server and of the one before."""

    kind: str
    texts: int
    now: HostFigures = field(default_factory=HostFigures)
    before: HostFigures = field(default_factory=HostFigures)

    def __str__(self) -> str:
        return f"{self.kind}, {self.texts} texts: {', '.join(figure(median(values)) for values in self.now.all)}"

    def turns(self, number: int, server: Server, other: Server | None) -> list[tuple[Server, HostFigures]]:
        turns = [(server, self.now)] if other is None else [(other, self.before), (server, self.now)]
        return turns[::-1] if number % 2 else turns

    def pair(self, step_ms: float) -> Pair:
        """Return the rates of both servers, with steps of so many ms."""
        texts = several(self.texts, "text")
        return Pair(f"{self.kind}, {texts}, steps of {step_ms:g} ms", "tokens/s", self.now.rate, self.before.rate)

    def costs(self) -> list[Pair]:
        """Return the processor time a token of worker and frontend, of both servers."""
        texts = f"{self.kind}, {several(self.texts, 'text')}"
        return [
            Pair(texts, "worker, µs/token", self.now.worker_micros, self.before.worker_micros),
            Pair(texts, "frontend, µs/token", self.now.frontend_micros, self.before.frontend_micros),
        ]

    def rows(self) -> list[list[str]]:
        rows = [[self.kind, str(self.texts), *(figure(median(values)) for values in self.now.all)]]
        if self.before.rate:
            pairs = zip(self.now.all, self.before.all, strict=True)
            rows.append(["of before", "", *(f"{paired_ratio(*pair)[0]:.2f}" for pair in pairs)])
        return rows

    def targets(self) -> list[Target]:
        most = MOST_MS.get(self.texts)
        if most is None or self.kind not in ("plain", "top-p"):
            return []
        step, token = median(self.now.worker_ms), median(self.now.frontend_micros)
        name = f"{self.kind}, {self.texts} texts: "
        return [
            Target(f"{name}worker, ms a step", figure(step), f"≤ {most:g}", step <= most),
            Target(f"{name}frontend, µs a token", figure(token), f"≤ {MOST_MICROS:g}", token <= MOST_MICROS),
        ]


def table(step_ms: float, loads: list[HostLoad]) -> Table:
    title = f"Steps of {step_ms:g} ms" if step_ms else "Steps that wait for no device"
    return Table(title, ("", "texts", *COLUMNS), [row for load in loads for row in load.rows()])
