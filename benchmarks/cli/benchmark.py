"""Options and report of all benchmarks' commands: `--quick`, `--json`, `--plots`, an orderly end."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from benchmarks.reports.draw import draw, require_matplotlib
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report

Measure = Callable[..., Report]
QUICK = "--quick"


class Benchmark(click.Command):
    """Its callback fills the report that it is given; the command prints it, writes it, and returns it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        command = shlex.join(["python", "-m", "benchmarks", str(self.name), *args])
        ctx.obj = Report(str(self.name), command, machine())
        if QUICK in args:  # first, so that what else is said counts
            args = [*self._shortened(), *(arg for arg in args if arg != QUICK)]
        return super().parse_args(ctx, args)

    def _shortened(self) -> Sequence[str]:
        """QUICK of the benchmark's module."""
        arguments: Sequence[str] = getattr(sys.modules[getattr(self.callback, "__module__", __name__)], "QUICK", ())
        return arguments

    def invoke(self, ctx: click.Context) -> Report:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
        ctx.params.pop("quick")
        path: Path | None = ctx.params.pop("json_file")
        plots: Path | None = ctx.params.pop("plots")
        if plots is not None:
            require_matplotlib()
        report: Report = ctx.obj
        try:
            ctx.invoke(self.callback or _nothing, report=report, **ctx.params)
        except asyncio.TimeoutError:
            raise click.ClickException(f"{self.name}: a run did not end within its time limit.") from None
        click.echo(f"\n# {report.name}\n\n{report}")
        if path is not None:
            path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
        if plots is not None:
            draw(report.plots, plots)
        return report


def benchmark(name: str) -> Callable[[Callable[..., None]], Benchmark]:
    """`name` is the module's; the function's doc string is the help text."""

    def decorate(measure: Callable[..., None]) -> Benchmark:
        path = click.Path(path_type=Path)
        for option in (
            click.option("--plots", type=path, help="Draw what the report compares into this folder, as PNG and SVG."),
            click.option(
                QUICK, is_flag=True, help="A short run, to see whether it works; other options count as well."
            ),
            click.option("--json", "json_file", type=path, help="Write the report there, too."),
        ):
            measure = option(measure)
        return click.command(name, cls=Benchmark, context_settings={"show_default": True})(measure)

    return decorate


def progress(text: str) -> None:
    """Print it to stderr: the report alone is on stdout."""
    click.echo(text, err=True)


def _nothing(**_: Any) -> None:
    return None
