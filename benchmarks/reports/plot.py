"""Plots of a report: `report.plots.append(Bars(...))`, or `Lines(...)`.

Give all values of all rounds: drawn are their median and, as a thin line or a band, lowest to highest. Labels name the
unit, `caption` says in a sentence what is to be seen, whatever the figures are. `name` is the file's, begins with the
benchmark's, and is followed by what it shows where there are several:

    report.plots.append(
        Bars(
            "overhead",
            "Echo of 128 bytes, batch size 1",
            "requests/s",
            {"32 connections": {"msx": [41_000, 42_000, 40_500], "mosec 0.9.8": [21_900, 21_500, 22_000]}},
            caption="Requests that are answered in a second; more is better.",
        )
    )
    report.plots.append(
        Lines(
            "batching-mlp",
            "Perceptron, Poisson arrivals",
            "requests/s",
            "p99 ms",
            {"msx": {100: [3.1, 3.0], 200: [4.0, 4.4]}, "wait 10 ms": {100: [13.0, 13.3], 200: [12.1, 12.8]}},
            log_y=True,
            caption="The time within which 99 % are answered, by what arrives; lower is better.",
        )
    )

A server's bars and lines are told by its first word: what begins with "msx" is red, and the first line of it is the
strong one. Scales that are not logarithmic begin at zero. They are written by `--plots FOLDER`, and into docs/plots
by `python -m benchmarks all --write-docs`, where docs/benchmarks/*.md shows them under the report's tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Values = Sequence[float]
"""Values of all rounds."""


@dataclass(frozen=True)
class Bars:
    name: str
    title: str
    label: str
    """Label of the axis of values, with its unit."""
    panels: Mapping[str, Mapping[str, Values]]
    """Panels beside each other, each with its own scale; in each a bar by its name, from the top. All have the same
    bars."""
    caption: str = ""


@dataclass(frozen=True)
class Lines:
    name: str
    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Mapping[float, Values]]
    """Points in their order, by name: x to the values of y."""
    log_x: bool = False
    log_y: bool = False
    caption: str = ""


Plot = Bars | Lines
