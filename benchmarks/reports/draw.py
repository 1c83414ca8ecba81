"""Plots as PNG and SVG. The background is white everywhere, so that a page in dark colours can show them, too.

The same values give the same SVG: no date, no random ids. matplotlib is imported when something is drawn, no sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from benchmarks.reports.figures import figure, median
from benchmarks.reports.marks import OURS, Mark, is_ours, marks
from benchmarks.reports.plot import Bars, Lines, Plot, Values

OTHERS, INK = "#8a929b", "#1f2328"
STYLE: dict[str, Any] = {
    "svg.hashsalt": "msx",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": "#c4cad1",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e6e9ed",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


def require_matplotlib() -> None:
    """Raises click.ClickException when it is not installed: before something is measured, not after."""
    if find_spec("matplotlib") is None:
        raise click.ClickException("Plots need matplotlib, which is not installed: pip install -e '.[benchmarks]'.")


def draw(plots: Sequence[Plot], folder: Path) -> None:
    """NAME.png and NAME.svg of each."""
    require_matplotlib()
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        for plot in plots:
            drawn = _bars(plot) if isinstance(plot, Bars) else _lines(plot)
            drawn.savefig(folder / f"{plot.name}.png", dpi=144, metadata={"Software": None})
            drawn.savefig(folder / f"{plot.name}.svg", metadata={"Date": None, "Creator": None})


def _bars(plot: Bars) -> Any:
    rows = len(next(iter(plot.panels.values())))
    drawn = _figure(plot.title, width=2.6 + 2.4 * len(plot.panels), height=1.0 + 0.32 * rows)
    axes = drawn.subplots(1, len(plot.panels), sharey=True, squeeze=False)[0]
    for axis, (title, bars) in zip(axes, plot.panels.items(), strict=True):
        axis.set_title(title, fontsize=9)
        axis.set_xlabel(plot.label)
        _panel(axis, bars)
    axes[0].invert_yaxis()
    return drawn


def _panel(axis: Any, bars: Mapping[str, Values]) -> None:
    for name, values in bars.items():
        middle = median(values)
        axis.barh(name, middle, height=0.62, color=OURS if is_ours(name) else OTHERS)
        axis.plot([min(values), max(values)], [name, name], color=INK, linewidth=1)
        axis.annotate(
            figure(middle), (max(values), name), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
        )
    axis.set_xlim(0, 1.3 * max(max(values) for values in bars.values()))
    axis.grid(axis="x")
    axis.tick_params(axis="y", length=0)
    axis.locator_params(axis="x", nbins=4)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,g}" if value < 1e5 else f"{value / 1e3:,g}k")


def _lines(plot: Lines) -> Any:
    drawn = _figure(plot.title, width=7.2, height=4.0)
    axis = drawn.subplots()
    axis.set(xlabel=plot.x_label, ylabel=plot.y_label)
    _scale(axis.xaxis, axis.set_xscale, plot.log_x)
    _scale(axis.yaxis, axis.set_yscale, plot.log_y)
    for name, mark in marks([*plot.series]).items():
        _series(axis, name, plot.series[name], mark)
    _from_zero(axis, plot)
    axis.grid()
    drawn.legend(loc="outside right upper")
    return drawn


def _scale(ticks: Any, set_scale: Callable[[str], None], logarithmic: bool) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    if logarithmic:
        set_scale("log")
        ticks.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ticks.set_minor_formatter(NullFormatter())
    ticks.set_major_formatter(lambda value, _: f"{value:,g}")


def _from_zero(axis: Any, plot: Lines) -> None:
    """Lets the axes begin at zero, so that proportions are visible."""
    if not plot.log_x:
        axis.set_xlim(left=0)
    if not plot.log_y:
        axis.set_ylim(0, 1.1 * max(max(values) for points in plot.series.values() for values in points.values()))


def _series(axis: Any, name: str, points: Mapping[float, Values], mark: Mark) -> None:
    """Two points are a mark each: a line between them would show values that were not measured."""
    x, middles = [*points], [median(values) for values in points.values()]
    dash = mark.dash if len(points) > 2 else "none"
    axis.plot(
        x,
        middles,
        linestyle=dash,
        marker=mark.marker,
        color=mark.colour,
        linewidth=mark.width,
        markersize=4,
        label=name,
    )
    low, high = ([end(values) for values in points.values()] for end in (min, max))
    axis.fill_between(x, low, high, color=mark.colour, alpha=0.12, linewidth=0)


def _figure(title: str, *, width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    drawn.suptitle(title, fontsize=10, fontweight="bold")
    return drawn
