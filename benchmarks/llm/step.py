"""Parts of an engine's step, and the effect of a long prompt on the texts that run."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.llm.arrivals import Arrival
from benchmarks.llm.setting import SLOTS, Setting
from benchmarks.llm.streams import stream_all
from benchmarks.llm.trace import percentile, within
from benchmarks.reports.figures import figure, median
from benchmarks.reports.table import Table, Target
from benchmarks.servers.msx import Server

PARTS = ("model", "sampling", "scheduling", "messaging")
OVERHEAD, DISTURBANCE = 0.10, 2.0
"""The promise: the share of a step outside the model; a multiple of the p99 between tokens."""
SHORT, LONG = 16, 2000
"""Tokens of prompts."""
OUTPUT = 224
"""Tokens of the texts that run: their positions stay in the smallest bucket."""
QUIET = 2.0
"""Seconds until the long prompt comes."""
UPDATE = 2.5
"""Seconds until the metrics tell what has been."""

GAUGE = re.compile(r'^msx_llm_step(?:s|_seconds)\{(?:.*\bpart="(\w+)")?.*\} (\S+)$', re.MULTILINE | re.IGNORECASE)

Report = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """Seconds by part, of one step."""

    parts: dict[str, float]

    @property
    def overhead(self) -> float:
        """The share of everything but the model; `messaging` counts, too, although it runs beside the model."""
        return 1 - self.parts["model"] / sum(self.parts.values())

    def table(self) -> Table:
        whole = sum(self.parts.values())
        rows = [(part, figure(seconds * 1000), f"{seconds / whole:.1%}") for part, seconds in self.parts.items()]
        return Table(f"A step at {SLOTS[-1]} texts", ("part", "ms", "share"), rows)

    def target(self) -> Target:
        what = f"sampling, scheduling and messaging, of a step at {SLOTS[-1]} texts"
        return Target(what, f"{self.overhead:.1%}", f"< {OVERHEAD:.0%}", self.overhead < OVERHEAD)


@dataclass(frozen=True)
class Disturbance:
    """Seconds, a figure a run."""

    quiet: list[float]
    """Seconds between tokens, p99."""
    meanwhile: list[float]
    """The same, from the long prompt's arrival to its first token."""
    first: list[float]
    """Until the long prompt's first token."""

    @property
    def ratio(self) -> float:
        return median([after / before for before, after in zip(self.quiet, self.meanwhile, strict=True)])

    def table(self) -> Table:
        rows = [
            (what, figure(median(values) * 1000))
            for what, values in (
                ("between tokens p99, before", self.quiet),
                ("between tokens p99, meanwhile", self.meanwhile),
                ("the prompt's first token", self.first),
            )
        ]
        return Table(f"A prompt of {LONG:,} tokens comes while {SLOTS[-1] - 1} texts run", ("what", "ms"), rows)

    def target(self) -> Target:
        what = f"between tokens p99, times, while a prompt of {LONG:,} tokens is read"
        return Target(what, f"{self.ratio:.2f}", f"< {DISTURBANCE:g}", self.ratio < DISTURBANCE)


def measure_step(all_: Setting) -> Step:
    before = _totals(all_.server)
    stream_all(all_.server.address, all_.clients.alike(SLOTS[-1], SHORT, OUTPUT))
    after = _totals(all_.server)
    steps = after["steps"] - before["steps"]
    return Step({part: (after[part] - before[part]) / steps for part in PARTS})


def measure_disturbance(all_: Setting, runs: int, report: Report) -> Disturbance:
    found = Disturbance([], [], [])
    for number in range(runs):
        _disturb(all_, found)
        report(f"a long prompt, {number + 1} of {runs}: {found.meanwhile[-1] / found.quiet[-1]:.2f} times the p99")
    return found


def _disturb(all_: Setting, found: Disturbance) -> None:
    running = all_.clients.alike(SLOTS[-1] - 1, SHORT, OUTPUT)
    [prompt] = all_.clients.alike(1, LONG, 1)
    late: Arrival = replace(prompt, at=QUIET)
    *others, long = stream_all(all_.server.address, [*running, late])
    settled = max(trace.instants[0] for trace in others)
    found.quiet.append(percentile(within(others, settled, long.asked), 0.99))
    found.meanwhile.append(percentile(within(others, long.asked, long.instants[0]), 0.99))
    found.first.append(long.first)


def _totals(server: Server) -> dict[str, float]:
    """Seconds by part, and how many steps, since the model was loaded."""
    time.sleep(UPDATE)
    with urllib.request.urlopen(f"{server.info['metrics']}/metrics", timeout=10) as answer:
        return totals(answer.read().decode())


def totals(exposition: str) -> dict[str, float]:
    """Sums in Prometheus' text format."""
    return {part or "steps": float(value) for part, value in GAUGE.findall(exposition)}
