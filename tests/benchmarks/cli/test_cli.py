"""The command lines, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks import __main__ as program
from benchmarks.cli import all as all_of_them
from benchmarks.cli.benchmark import benchmark
from benchmarks.cli.names import MODULES, NAMES, command, quick_arguments
from benchmarks.failures import cancel
from benchmarks.reports import docs
from benchmarks.reports.docs import PAGES, NoMarkers, page_of, replace
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report, Table, Target

FOLDER = Path(program.__file__).parent


@pytest.mark.parametrize("name", [*NAMES, "all"])
def test_help(name: str) -> None:
    shown = CliRunner().invoke(program.main, [name, "--help"], prog_name="python -m benchmarks")
    assert shown.exit_code == 0, shown.output
    assert f"Usage: python -m benchmarks {name} [OPTIONS]" in shown.output
    assert "--json" in shown.output


def test_the_group_lists_every_benchmark_with_its_first_sentence() -> None:
    shown = CliRunner().invoke(program.main, ["--help"]).output
    assert [line.split()[0] for line in shown.partition("Commands:\n")[2].splitlines()] == [*NAMES, "all"]
    assert "Requests per second of an echo model" in shown


def test_an_unknown_benchmark_is_named() -> None:
    refused = CliRunner().invoke(program.main, ["overheat"])
    assert refused.exit_code == 2
    assert "No such command 'overheat'" in refused.output


def test_every_script_is_in_the_group_and_has_its_place_in_the_docs() -> None:
    files = [path for path in FOLDER.rglob("*.py") if "\n@benchmark(" in path.read_text()]
    modules = [".".join(path.relative_to(FOLDER.parent).with_suffix("").parts) for path in files]
    assert sorted(MODULES.values()) == sorted(modules)
    table = (PAGES.parent / "benchmarks.md").read_text()
    for name in NAMES:
        assert f"| [`{name}`](" in table
        page = page_of(name).read_text()
        assert replace(page, name, "the figures").count("the figures") == page.count("the figures") + 1


@pytest.mark.parametrize("name", NAMES)
def test_quick_arguments_are_options_of_the_script(name: str) -> None:
    command(name).make_context(name, [*quick_arguments(name)])


def test_a_report_is_printed_and_written_as_json(tmp_path: Path) -> None:
    @benchmark("sample")
    @click.option("--rounds", default=3)
    def main(report: Report, rounds: int) -> None:
        """A sample."""
        report.tables.append(Table("Rounds", ("what", "how many"), [("rounds", str(rounds))]))
        report.targets.append(Target("rounds", str(rounds), "< 2", rounds < 2))

    path = tmp_path / "report.json"
    done = CliRunner().invoke(main, ["--rounds", "2", "--json", str(path)])
    assert done.exit_code == 0, done.output
    assert "| rounds | 2        |" in done.output
    assert "| rounds | 2        | < 2    | NO  |" in done.output
    written = json.loads(path.read_text())
    assert written["command"].startswith("python -m benchmarks sample --rounds 2")
    assert written["machine"]["cores"] == machine().cores
    assert written["tables"][0]["rows"] == [["rounds", "2"]]


def test_a_cell_does_not_break_its_table() -> None:
    assert str(Table("T", ("a",), [("x|y",)])).splitlines()[-1] == "| x\\|y |"


def test_figures_of_a_busy_machine_are_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (7.0, 0.0, 0.0))
    monkeypatch.setattr(all_of_them, "NAMES", ())  # nothing is started, whatever happens
    machine.cache_clear()
    try:
        refused = CliRunner().invoke(all_of_them.main, ["--write-docs"])
    finally:
        machine.cache_clear()
    assert refused.exit_code == 1
    assert "Wait until it is below 0.5." in refused.output


def test_a_short_run_of_one() -> None:
    """Its QUICK, of which other options may say otherwise."""
    context = cancel.main.make_context("cancel", ["--quick"])
    assert context.params["runs"] == 3
    assert cancel.main.make_context("cancel", ["--runs", "2", "--quick"]).params["runs"] == 2


def test_only_what_is_between_the_markers_is_replaced() -> None:
    page = "before\n<!-- start -->\nold\n<!-- /start -->\nafter\n<!-- cancel -->\nkept\n<!-- /cancel -->\n"
    assert replace(page, "start", "new") == page.replace("old\n", "\nnew\n\n")


def test_a_name_without_markers_on_any_page_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half.md").write_text("nothing here <!-- start -->\n")
    monkeypatch.setattr(docs, "PAGES", tmp_path)
    with pytest.raises(NoMarkers, match="<!-- start -->"):
        page_of("start")
