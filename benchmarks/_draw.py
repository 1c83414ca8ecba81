"""Plots as PNG and SVG. The background is white everywhere, so that a page in dark colours can show them, too.

The same values give the same SVG: no date, no random ids. matplotlib is imported when something is drawn, no sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import click

from benchmarks._figures import figure, median
from benchmarks._plot import Bars, Lines, Plot, Values

OURS, OTHERS, INK = "#c8102e", "#8a929b", "#1f2328"
LINES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a929b")
"""Okabe and Ito's colours, which the colour-blind tell apart."""
MARKERS = ("o-", "s-", "D-", "^-", "v-", "P-", "X-")
DASHES = ("o-", "o--", "o:")
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
        axis.barh(name, middle, height=0.62, color=OURS if _is_ours(name) else OTHERS)
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
    ours, others = cycle(zip((OURS,) * len(DASHES), DASHES, strict=True)), cycle(zip(LINES, MARKERS, strict=True))
    for name, points in plot.series.items():
        colour, style = next(ours if _is_ours(name) else others)
        _series(axis, name, points, colour, style)
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


def _series(axis: Any, name: str, points: Mapping[float, Values], colour: str, style: str) -> None:
    x = [*points]
    axis.plot(x, [median(values) for values in points.values()], style, color=colour, markersize=4, label=name)
    low, high = ([end(values) for values in points.values()] for end in (min, max))
    axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _figure(title: str, *, width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    drawn.suptitle(title, fontsize=10, fontweight="bold")
    return drawn


def _is_ours(name: str) -> bool:
    return name.startswith("msx")
