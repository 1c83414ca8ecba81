"""All benchmarks, one after the other."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from benchmarks.cli.names import NAMES, command, quick_arguments
from benchmarks.reports.docs import PLOTS, NoMarkers, page_of, replace
from benchmarks.reports.draw import draw, require_matplotlib
from benchmarks.reports.machine import BUSY, machine
from benchmarks.reports.table import Report


@click.command("all", context_settings={"show_default": True})
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="May be repeated; all by default.")
@click.option("--quick", is_flag=True, help="Few and short runs: to see whether the scripts work.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write all reports there, too.")
@click.option(
    "--write-docs",
    is_flag=True,
    help=f"Put tables and plots into the pages of docs/benchmarks; refused at a load of {BUSY} or more.",
)
def main(only: tuple[str, ...], quick: bool, json_file: Path | None, write_docs: bool) -> None:
    """Run the benchmarks with their defaults: about an hour."""
    if write_docs and machine().busy:
        raise click.ClickException(
            f"The load of this machine is {machine().load:.2f}: figures of a busy machine are not worth writing down. "
            f"Wait until it is below {BUSY}."
        )
    if write_docs:
        require_matplotlib()
    reports = [_run(name, quick=quick, write=write_docs) for name in only or NAMES]
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(reports), indent=2) + b"\n")


def _run(name: str, *, quick: bool, write: bool) -> Report:
    arguments = [*quick_arguments(name)] if quick else []
    report: Report = command(name).main(arguments, prog_name=name, standalone_mode=False)
    if write:  # after each, so that what breaks the next one does not cost these
        try:
            page = page_of(name)
        except NoMarkers as error:
            raise click.ClickException(str(error)) from None
        page.write_text(replace(page.read_text(), name, report.page(f"../{PLOTS.name}")))
        draw(report.plots, PLOTS)
    return report
