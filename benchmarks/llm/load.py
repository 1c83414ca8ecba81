"""Continuous compared with static batching: random arrivals, outputs of all lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from benchmarks.llm.arrivals import highest, mean_output
from benchmarks.llm.setting import SLOTS, Setting
from benchmarks.llm.static import useful
from benchmarks.llm.streams import stream_all, stream_in_turn
from benchmarks.llm.trace import Trace, gaps, overall, percentile, sustained
from benchmarks.reports.figures import figure
from benchmarks.reports.plot import Lines
from benchmarks.reports.table import Table, Target

PATIENCE, GAIN = 3.0, 2.5
"""The promise: so many times an idle server's time per output token, and the throughput with which static batching
keeps to the same."""
LOWEST = 0.125
"""The share of the slots' capacity at which the search begins."""
BATCHES = 4
"""The share of static batching's rate at which it always has enough requests."""

Report = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """Figures of one load."""

    batching: str
    rate: float
    """Requests a second; infinity: all at once."""
    tokens: float
    """Output tokens a second."""
    traces: list[Trace]

    @property
    def worst(self) -> float:
        return percentile((trace.per_token for trace in self.traces), 0.99)


CAPTION = (
    "What a client waits for each token of its answer, all waiting included, in the slowest hundredth of the requests, "
    "by how many requests come in a second; lower is better."
)


@dataclass(frozen=True)
class Load:
    idle: Row
    tried: list[Row]
    """Rows in the order of trying."""
    best: Row | None
    """Row of the highest rate that keeps the promise."""
    static: list[Row]
    """Rows at the best rate ÷ GAIN, between the two, at the best rate, and without a pause."""
    useful: float
    """The share of a static batch's tokens that were asked for, without pauses between requests."""

    @property
    def static_patience(self) -> float:
        """Time per output token of static batching at 1 / GAIN of the load, in times of an idle server's."""
        return self.static[0].worst / self.idle.worst

    def table(self) -> Table:
        columns = (
            "batching",
            "requests/s",
            "tokens/s",
            "first token p50, ms",
            "p99",
            "between tokens p50, ms",
            "p99",
            "time/tokens p99, ms",
            "of idle",
        )
        rows = [self._cells(row) for row in (self.idle, *sorted(self.tried, key=lambda row: row.rate), *self.static)]
        return Table("Requests at random: continuous and static batching", columns, rows)

    def plot(self) -> Lines:
        series = {
            "msx, continuous batching": sorted(self.tried, key=lambda row: row.rate),
            "static batching": self.static,
        }
        points = {
            name: {row.rate: [row.worst * 1000] for row in rows if math.isfinite(row.rate)}
            for name, rows in series.items()
        }
        label = "time / output tokens, p99, ms"
        return Lines("llm-load", "Requests at random", "requests/s", label, points, caption=CAPTION)

    def target(self) -> Target:
        """Static batching that breaks the promise at 1 / GAIN of the rate gives less than that share of the tokens."""
        what = (
            f"static batching at 1/{GAIN:g} of the best rate: time/tokens p99, of idle (ours keeps below {PATIENCE:g})"
        )
        met = self.best is not None and self.static_patience >= PATIENCE
        return Target(what, f"{self.static_patience:.2f}" if self.best else "no rate", f"≥ {PATIENCE:g}", met)

    def _cells(self, row: Row) -> Sequence[str]:
        first, between = [trace.first for trace in row.traces], gaps(row.traces)
        times = [percentile(values, share) for values in (first, between) for share in (0.5, 0.99)]
        rate = "all at once" if math.isinf(row.rate) else "in turn" if row is self.idle else figure(row.rate)
        shown = [figure(seconds * 1000) for seconds in (*times, row.worst)]
        return (row.batching, rate, figure(row.tokens), *shown, f"{row.worst / self.idle.worst:.2f}")


def measure(all_: Setting, capacity: float, requests: int, tries: int, report: Report) -> Load:
    """`capacity`: output tokens a second of all slots, were they always busy."""
    idle = _idle(all_, requests)
    report(f"in turn: {idle.worst * 1000:.1f} ms a token at p99")
    tried: list[Row] = []

    def holds(rate: float) -> bool:
        tried.append(_continuous(all_, requests, rate))
        times = tried[-1].worst / idle.worst
        report(f"{rate:.2f} requests/s: {tried[-1].tokens:.0f} tokens/s, {times:.2f} of the time in turn")
        return times < PATIENCE

    top = capacity / mean_output(all_.clients.poisson(requests, 1.0))
    rate = highest(holds, LOWEST * top, top, tries)
    best = next((row for row in tried if row.rate == rate), None)
    same = rate or tried[-1].rate
    static = [_static(all_, requests // 2, one) for one in (same / GAIN, same / math.sqrt(GAIN), same)]
    static.append(_static(all_, BATCHES * SLOTS[-1], math.inf))
    report(f"static batching: {static[-1].tokens:.0f} tokens/s without a pause")
    crowd = all_.clients.poisson(BATCHES * SLOTS[-1], math.inf)
    return Load(idle, tried, best, static, useful([one.output for one in crowd], SLOTS[-1]))


def _idle(all_: Setting, requests: int) -> Row:
    traces = stream_in_turn(all_.server.address, all_.clients.poisson(max(requests // 5, 4), math.inf))
    return Row("continuous", 0.0, overall(traces), traces)


def _continuous(all_: Setting, requests: int, rate: float) -> Row:
    traces = stream_all(all_.server.address, all_.clients.poisson(requests, rate))
    return Row("continuous", rate, sustained(traces), traces)


def _static(all_: Setting, requests: int, rate: float) -> Row:
    orders = [asdict(one) for one in all_.clients.poisson(requests, rate)]
    found = all_.bare.ask("static", arrivals=orders, slots=SLOTS[-1])["traces"]
    traces = [Trace(asked, instants) for asked, instants in found]
    return Row("static", rate, overall(traces), traces)
