"""Tables, and the report that a benchmark makes of them: for the terminal, for docs/benchmarks/*.md, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.reports.machine import Machine
from benchmarks.reports.plot import Plot


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        """Markdown, aligned so that it reads well on a terminal too."""
        rows = [[cell.replace("|", "\\|") for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [_line(row, widths) for row in rows]
        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        return "\n".join([f"**{self.title}**", "", lines[0], rule, *lines[1:]])


@dataclass(frozen=True)
class Target:
    """Promise for one figure, and whether it holds."""

    what: str
    measured: str
    limit: str
    met: bool


@dataclass
class Report:
    name: str
    command: str
    machine: Machine
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    simulated: bool = False
    """Whether time is virtual: what machine it was does not count."""

    def __str__(self) -> str:
        """Markdown for a terminal: without pictures."""
        return "\n\n".join([*self._figures(), *self._verdict()])

    def page(self, folder: str) -> str:
        """Markdown with the pictures, which are in `folder`; each is a link to its PNG, with its caption under it."""
        pictures = [f"[![{it.title}]({folder}/{it.name}.svg)]({folder}/{it.name}.png)" for it in self.plots]
        shown = [f"{picture}\n\n{it.caption}".rstrip() for picture, it in zip(pictures, self.plots, strict=True)]
        return "\n\n".join([*self._figures(), *shown, *self._verdict()])

    def _figures(self) -> list[str]:
        """Lines that Markdown does not run together, and the tables."""
        head = [f"Command: `{self.command}`", *([] if self.simulated else self.machine.lines()), *self.notes]
        return ["\n".join(f"- {line}" for line in head), *map(str, self.tables)]

    def _verdict(self) -> list[str]:
        rows = [(target.what, target.measured, target.limit, "yes" if target.met else "NO") for target in self.targets]
        return [str(Table("Targets", ("what", "measured", "target", "met"), rows))] if rows else []


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
