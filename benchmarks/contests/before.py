"""A server of another checkout that takes part in the same rounds: what a change costs is the ratio to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks.reports.figures import Interval, figure, median, median_interval, paired_ratio
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import OTHERS_PROPERTIES, OWN_PROPERTIES

BEFORE = "before"
"""The setting of a server of another checkout: usually of the commit before a change."""
LEAST = 0.97
"""Lower bound of the interval of the median ratio: a rate below it is a loss, and not noise."""
MOST = 1.03
"""Upper bound of the ratio of the processor time a request."""
COLUMNS = ("setting", "unit", BEFORE, "now", f"now / {BEFORE}, median", "95 % interval", "lowest – highest")


class Pair(NamedTuple):
    """The same figure of both servers, one a round."""

    setting: str
    unit: str
    now: Sequence[float]
    before: Sequence[float]

    def interval(self) -> Interval:
        """Return the 95 % interval of the median of the rounds' ratios, now to before."""
        return median_interval([now / before for now, before in zip(self.now, self.before, strict=True)])


def before_option(measure: Callable[..., None]) -> Callable[..., None]:
    """Adds the option `--before`, which is None or the path of an `msx-serve`; and `--supervised`, for the servers of
    this environment alone."""
    path = click.Path(exists=True, dir_okay=False, path_type=Path)
    option: Callable[[Callable[..., None]], Any] = click.option(
        "--before", type=path, help="msx-serve of another checkout, which takes part in each setting of ours."
    )
    supervised: Callable[[Callable[..., None]], Any] = click.option(
        "--supervised",
        is_flag=True,
        expose_value=False,
        callback=_supervise,
        help="Our servers have supervisor=true, and those of --before false: its cost, with the same msx-serve.",
    )
    decorated: Callable[..., None] = supervised(option(measure))
    return decorated


def _supervise(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        OWN_PROPERTIES.append("supervisor=true")
        OTHERS_PROPERTIES.append("supervisor=false")


def name_before(name: str) -> str:
    return f"{name}, {BEFORE}"


def compare(
    report: Report,
    pairs: Sequence[Pair],
    *,
    what: str,
    least: float | None = LEAST,
    costs: Sequence[Pair] = (),
    most: float = MOST,
) -> None:
    """Add the table of the ratios, and a target for each.

    The lower bound of a rate's interval is at `least` (None: no target), the median of a cost's ratios at `most`.
    Without a pair nothing is added.
    """
    if not pairs and not costs:
        return
    report.tables.append(Table(f"{what}: now and {BEFORE}", COLUMNS, [_row(pair) for pair in (*pairs, *costs)]))
    report.targets += [] if least is None else [_target(pair, least) for pair in pairs]
    report.targets += [_cost_target(pair, most) for pair in costs]


def _row(pair: Pair) -> Sequence[str]:
    middle, low, high = paired_ratio(pair.now, pair.before)
    figures = (figure(median(pair.before)), figure(median(pair.now)))
    return (pair.setting, pair.unit, *figures, f"{middle:.3f}", _range(*pair.interval()), _range(low, high))


def _range(low: float, high: float) -> str:
    return f"{low:.3f} – {high:.3f}"


def _target(pair: Pair, least: float) -> Target:
    low = pair.interval().low
    return Target(f"{pair.setting}: {pair.unit} of {BEFORE}, lower bound", f"{low:.3f}", f"≥ {least:g}", low >= least)


def _cost_target(pair: Pair, most: float) -> Target:
    middle = paired_ratio(pair.now, pair.before)[0]
    return Target(f"{pair.setting}: {pair.unit} of {BEFORE}", f"{middle:.3f}", f"≤ {most:g}", middle <= most)
