"""A model divided over ranks: its load time, the time of a step, and the share of communication."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.parallel.group import PHASES, Group, Steps, group
from benchmarks.parallel.perceptron import Perceptron
from benchmarks.reports.figures import figure, median, spread
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report, Table, Target

QUICK = ("--ranks", "1", "--ranks", "2", "--rounds", "2", "--steps", "10", "--weights-gb", "0")
MESSAGING, SLACK = 0.05, 700e6
"""Targets: share of a step; bytes that a rank may have beside its weights."""
CALLS = 20
"""Calls of one step in a round."""
WIDE = 2048
"""Width of the large model."""


@dataclass
class Found:
    """Measurements of one number of ranks, a figure a round; seconds."""

    load: dict[str, float]
    steps: list[float] = field(default_factory=list)
    collectives: list[float] = field(default_factory=list)
    """Share of the steps' time."""
    pauses: list[float] = field(default_factory=list)
    """Pauses between the steps."""
    gaps: list[float] = field(default_factory=list)
    """Gaps between the steps of a stream that does nothing."""
    led: list[float] = field(default_factory=list)
    """The additional time of a streamed step, which rank 0 announces, with a collective in each step."""
    calls: list[float] = field(default_factory=list)
    """A request that does nothing, seen by the client."""


@dataclass(frozen=True)
class Messaging:
    """Seconds that the ranks' agreement costs, a figure a round, without what one rank alone spends."""

    told: list[float]
    """Rank 0 tells the others of a step."""
    followed: list[float]
    """… and they are there."""
    called: list[float]
    """A call: it is told, and every rank reports its end."""
    paused: list[float]
    """As `told`, between steps that compute: with few cores, a woken process takes one from a rank."""

    @classmethod
    def between(cls, several: Found, one: Found) -> Messaging:
        return cls(
            _less(several.gaps, one.gaps),
            _less(several.led, one.led),
            _less(several.calls, one.calls),
            _less(several.pauses, one.pauses),
        )

    def share(self, step: float) -> float:
        """The most expensive of telling, following and calling, as a share of a step."""
        return max(median(self.told), median(self.followed), median(self.called), 0.0) / step


@dataclass(frozen=True)
class Memory:
    """Bytes; `peak` is the highest of all ranks."""

    ranks: int
    perceptron: Perceptron
    peak: int
    seconds: float

    @property
    def limit(self) -> float:
        return self.perceptron.size / self.ranks + self.perceptron.replicated + SLACK


@benchmark("parallel")
@click.option("--ranks", multiple=True, default=(1, 2, 4), type=click.IntRange(1), help="May be repeated; 1 is needed.")
@click.option("--rounds", default=7, type=click.IntRange(1), help="Every number of ranks takes its turn in each round.")
@click.option("--steps", default=40, type=click.IntRange(2), help="Steps of each turn.")
@click.option("--width", default=1024, type=click.IntRange(1), help="Of the perceptron; its blocks are 4 times wider.")
@click.option("--blocks", default=3, type=click.IntRange(1))
@click.option("--weights-gb", default=1.0, type=click.FloatRange(0), help="Of the model that is weighed; 0: none is.")
def main(
    report: Report, ranks: tuple[int, ...], rounds: int, steps: int, width: int, blocks: int, weights_gb: float
) -> None:
    """A perceptron whose layers are divided over 1, 2 and 4 ranks of one thread each.

    A step is one pass of one row. All groups are up for the whole time and take turns in rounds. What our messages
    cost is the difference between a group and a single rank, both doing nothing; the collectives are timed one by one.
    """
    ranks = tuple(sorted({1, *ranks}))
    perceptron = Perceptron(width, blocks)
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        found = _measure(ranks, perceptron, Path(folder, "model.safetensors"), rounds, steps)
        weighed = _weigh(ranks, weights_gb, Path(folder, "large.safetensors")) if weights_gb else []
    report.notes.append(
        f"Model: {blocks} blocks of {width:,} × {4 * width:,} and back, {perceptron.size / 1e6:.0f} MB; "
        f"a step is one row; {rounds} rounds of {steps} steps, 1 thread a rank"
    )
    report.tables += [_loading(found), _stepping(found), _messages(found)]
    report.plots.append(_plot(found))
    report.targets += _messaging_targets(found)
    if weighed:
        report.tables.append(_memory(weighed))
        report.targets += [_memory_target(one) for one in weighed]


def _plot(found: dict[int, Found]) -> Bars:
    steps = {f"{ranks} rank{'s' if ranks > 1 else ''}": [s * 1000 for s in one.steps] for ranks, one in found.items()}
    caption = "How long one step of the model takes, by how many ranks it is divided over; shorter is better."
    return Bars("parallel", "A step of a model divided over ranks", "ms", {"one row": steps}, caption)


def _measure(ranks: Sequence[int], perceptron: Perceptron, weights: Path, rounds: int, steps: int) -> dict[int, Found]:
    perceptron.write(weights)
    with ExitStack() as stack:
        groups = []
        for count in ranks:
            groups.append(stack.enter_context(group(count, perceptron, weights)))
            progress(f"parallel: {count} rank(s) loaded")
        found = {one.ranks: Found(one.load) for one in groups}
        for one in groups:
            _turn(one, Found({}), 2)
        for number in range(rounds):
            for one in groups:
                _turn(one, found[one.ranks], steps)
            progress(f"parallel: round {number + 1} of {rounds}")
    return found


def _turn(one: Group, found: Found, steps: int) -> None:
    passes = one.ask("mlp", steps, stream=True)[1]
    found.steps.append(_period(passes))
    found.collectives.append(mean(step["collectives"] for step in passes) / mean(_periods(passes)))
    found.pauses.append(_gap(passes))
    found.gaps.append(_gap(one.ask("nothing", steps, stream=True)[1]))
    found.led.append(_period(one.ask("meet", steps, stream=True)[1]) - _period(one.ask("meet", steps)[1]))
    found.calls.append(median([one.ask("nothing")[0] for _ in range(CALLS)]))


def _periods(steps: Steps) -> list[float]:
    return [after["began"] - before["began"] for before, after in pairwise(steps)]


def _period(steps: Steps) -> float:
    return median(_periods(steps))


def _gap(steps: Steps) -> float:
    return median([after["began"] - before["ended"] for before, after in pairwise(steps)])


def _less(several: Sequence[float], one: Sequence[float]) -> list[float]:
    """Round by round: what disturbs a round disturbs both."""
    return [first - second for first, second in zip(several, one, strict=True)]


def _weigh(ranks: Sequence[int], gigabytes: float, weights: Path) -> list[Memory]:
    perceptron = Perceptron.of_size(gigabytes * 1e9, WIDE)
    perceptron.write(weights)
    weighed = []
    for count in ranks:
        with group(count, perceptron, weights) as one:
            weighed.append(Memory(count, perceptron, max(one.peaks.values()), one.load["weights"]))
        progress(f"parallel: {perceptron.size / 1e9:.2f} GB weighed on {count} rank(s)")
    return weighed


def _loading(found: dict[int, Found]) -> Table:
    rows = [
        (str(count), *(figure(one.load[phase]) for phase in PHASES), figure(sum(one.load.values())))
        for count, one in found.items()
    ]
    return Table("Load time by phase, s", ("ranks", *PHASES, "all"), rows)


def _stepping(found: dict[int, Found]) -> Table:
    rows = [
        (
            str(count),
            figure(median(one.steps) * 1e3),
            _span(one.steps, 1e3),
            f"{median(one.collectives):.0%}" if count > 1 else "–",
            f"{Messaging.between(one, found[1]).share(median(one.steps)):.1%}" if count > 1 else "–",
        )
        for count, one in found.items()
    ]
    return Table("A step", ("ranks", "ms", "lowest – highest", "in collectives", "in our messages"), rows)


def _messages(found: dict[int, Found]) -> Table:
    """Differences to one rank, which therefore has no row."""
    rows = []
    for count, one in found.items():
        if count > 1:
            messaging = Messaging.between(one, found[1])
            kinds = (messaging.told, messaging.followed, messaging.called, messaging.paused)
            rows.append((str(count), *(f"{_micro(kind)} ({_span(kind, 1e6)})" for kind in kinds)))
    columns = ("ranks", "rank 0 tells a step", "… and all are there", "a call, with its reports", "between passes")
    return Table("Our messages, µs more than on one rank: median (lowest – highest)", columns, rows)


def _micro(seconds: Sequence[float]) -> str:
    return figure(median(seconds) * 1e6)


def _span(values: Sequence[float], unit: float) -> str:
    return spread([value * unit for value in values])


def _messaging_targets(found: dict[int, Found]) -> list[Target]:
    targets = []
    for count, one in found.items():
        if count > 1:
            share = Messaging.between(one, found[1]).share(median(one.steps))
            what = f"{count} ranks: our messages, of a step"
            targets.append(Target(what, f"{share:.1%}", f"< {MESSAGING:.0%}", share < MESSAGING))
    return targets


def _memory(weighed: Sequence[Memory]) -> Table:
    rows = [
        (
            str(one.ranks),
            figure(one.perceptron.size / 1e6),
            figure(one.perceptron.size / one.ranks / 1e6),
            figure(one.peak / 1e6),
            figure((one.peak - one.perceptron.size / one.ranks) / 1e6),
            figure(one.seconds),
        )
        for one in weighed
    ]
    columns = ("ranks", "weights, MB", "a rank's share", "its peak", "beside its share", "reading them, s")
    return Table("Memory of its own that a rank has while it loads, MB (the highest of all ranks)", columns, rows)


def _memory_target(one: Memory) -> Target:
    what = f"{one.ranks} rank(s): peak of a rank while it loads {one.perceptron.size / 1e9:.2f} GB, MB"
    return Target(what, figure(one.peak / 1e6), f"≤ {figure(one.limit / 1e6)}", one.peak <= one.limit)
