"""Plots of reports: what is in the files, and that the same values give the same files."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.cli import all as all_of_them
from benchmarks.cli.benchmark import benchmark
from benchmarks.reports import draw
from benchmarks.reports.docs import PAGES, PLOTS, pages
from benchmarks.reports.machine import machine
from benchmarks.reports.marks import marks
from benchmarks.reports.plot import Bars, Lines, Plot
from benchmarks.reports.table import Report, Table, Target

BARS = Bars(
    "sample",
    "Echo",
    "requests/s",
    {
        "1 connection": {"msx": [2000.0, 3000.0, 2500.0], "peer": [1000.0]},
        "32 connections": {"msx": [123_456.0], "peer": [0.5]},
    },
    caption="Longer is better.",
)
SERIES = {"msx": {100.0: [1.0, 2.0, 4.0], 1000.0: [3.0]}, "msx, tokens on": {100.0: [3.0]}, "peer": {100.0: [10.0]}}
LINES = Lines("sample-lines", "A sweep", "requests/s", "p99 ms", SERIES, log_x=True, log_y=True)


@pytest.fixture
def _matplotlib() -> None:
    pytest.importorskip("matplotlib")


def words(path: Path) -> list[str]:
    return [text.strip() for text in xml.parse(path).getroot().itertext() if text.strip()]


@pytest.mark.usefixtures("_matplotlib")
def test_bars_are_labelled_with_their_medians_and_the_axes_with_their_unit(tmp_path: Path) -> None:
    draw.draw([BARS], tmp_path)
    found = words(tmp_path / "sample.svg")
    assert {"Echo", "1 connection", "32 connections", "msx", "peer", "2,500", "1,000", "123,456", "0.500"} <= {*found}
    assert found.count("requests/s") == 2
    assert (tmp_path / "sample.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("_matplotlib")
def test_lines_have_a_legend_and_plain_numbers(tmp_path: Path) -> None:
    draw.draw([LINES], tmp_path)
    found = words(tmp_path / "sample-lines.svg")
    assert {"A sweep", "requests/s", "p99 ms", *SERIES, "1,000", "10"} <= {*found}


def test_no_two_lines_have_the_same_mark() -> None:
    settings = [f"{server} {wait} ms" for server in ("msx", "mosec", "TorchServe") for wait in (1, 5, 10, 50, 100, 200)]
    found = marks(["msx dynamic", *settings])
    assert len({(mark.colour, mark.dash, mark.marker) for mark in found.values()}) == len(found) == 19
    assert {mark.colour for name, mark in found.items() if name.startswith("msx")}.isdisjoint(
        mark.colour for name, mark in found.items() if not name.startswith("msx")
    )
    (strongest,) = [name for name, mark in found.items() if mark.width == max(mark.width for mark in found.values())]
    assert strongest == "msx dynamic"


@pytest.mark.usefixtures("_matplotlib")
def test_scales_begin_at_zero_so_that_a_little_looks_little(tmp_path: Path) -> None:
    draw.draw([Lines("memory", "Memory", "part", "MB", {"answers": {0.2: [55.5], 0.6: [56.0], 1.0: [57.9]}})], tmp_path)
    texts = words(tmp_path / "memory.svg")
    assert texts.count("0") == 2
    assert "40" in texts


@pytest.mark.usefixtures("_matplotlib")
def test_two_points_are_marks_without_a_line_between_them(tmp_path: Path) -> None:
    points = {1.0: [1.0], 2.0: [2.0], 3.0: [3.0]}
    for name, series in (("two", {x: points[x] for x in (1.0, 2.0)}), ("three", points)):
        draw.draw([Lines(name, "Load", "requests/s", "ms", {"static": series})], tmp_path)
    line = "stroke: #0072b2; stroke-width: 1.2"
    assert line not in (tmp_path / "two.svg").read_text()
    assert line in (tmp_path / "three.svg").read_text()


def test_each_picture_of_the_pages_has_a_sentence_under_it_and_is_there() -> None:
    page = "\n".join(page.read_text() for page in pages())
    pictures = re.findall(r"^\[!\[.*\]\((\S+)\)\]\((\S+)\)\n\n(.+)$", page, re.M)
    assert len(pictures) == page.count("[![")
    for svg, png, sentence in pictures:
        assert (PAGES / svg).is_file()
        assert (PAGES / png).is_file()
        assert sentence.endswith(".")
        assert not sentence.startswith(("[", "*"))
    assert {Path(name).name for picture in pictures for name in picture[:2]} == {path.name for path in PLOTS.iterdir()}


def test_the_pages_have_no_figures_of_a_busy_machine() -> None:
    assert "not worth keeping" not in "\n".join(page.read_text() for page in pages())


@pytest.mark.usefixtures("_matplotlib")
@pytest.mark.parametrize("plot", [BARS, LINES], ids=["bars", "lines"])
def test_the_same_values_give_the_same_files(tmp_path: Path, plot: Plot) -> None:
    for folder in ("one", "two"):
        draw.draw([plot], tmp_path / folder)
    for suffix in ("svg", "png"):
        one, two = ((tmp_path / folder / f"{plot.name}.{suffix}").read_bytes() for folder in ("one", "two"))
        assert one == two
        assert b"Matplotlib" not in one
        assert b"dc:date" not in one


def test_a_page_shows_the_pictures_between_tables_and_targets() -> None:
    table, target = Table("Rates", ("server",), [("msx",)]), Target("rate", "2", "≥ 1", True)
    report = Report("sample", "command", machine(), [table], [target], plots=[BARS])
    picture = "[![Echo](plots/sample.svg)](plots/sample.png)"
    page = report.page("plots")
    assert page.index("**Rates**") < page.index(picture) < page.index("**Targets**")
    assert page.replace(f"{picture}\n\n{BARS.caption}\n\n", "") == str(report)


@benchmark("sample")
def sample(report: Report) -> None:
    """A sample."""
    report.plots.append(BARS)


@pytest.mark.usefixtures("_matplotlib")
def test_a_command_draws_its_plots_into_a_folder(tmp_path: Path) -> None:
    done = CliRunner().invoke(sample, ["--plots", str(tmp_path / "made")])
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "made").iterdir()} == {"sample.png", "sample.svg"}


@pytest.mark.parametrize(
    ("command", "arguments"), [(sample, ["--plots", "made"]), (all_of_them.main, ["--write-docs"])]
)
def test_without_matplotlib_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: click.Command, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(draw, "find_spec", lambda _: None)
    monkeypatch.setattr(all_of_them, "NAMES", ())
    monkeypatch.setattr(all_of_them, "machine", lambda: replace(machine(), load=0.0))
    refused = CliRunner().invoke(command, arguments)
    assert refused.exit_code == 1
    assert "pip install -e '.[benchmarks]'" in refused.output
    assert "# sample" not in refused.output


@pytest.mark.usefixtures("_matplotlib")
def test_matplotlib_is_imported_by_drawing_alone() -> None:
    program = "import sys, benchmarks.__main__, benchmarks.throughput.overhead; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=PAGES.parents[1], check=False).returncode == 0
