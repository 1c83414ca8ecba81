"""The command lines, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks import all as every
from benchmarks._command import benchmark
from benchmarks._docs import PAGE, NoMarkers, replace
from benchmarks._machine import machine
from benchmarks._table import Report, Table, Target

COMMANDS: dict[str, click.Command] = {"all": every.main} | {name: made for name, (made, _) in every.BENCHMARKS.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str) -> None:
    shown = CliRunner().invoke(COMMANDS[name], ["--help"])
    assert shown.exit_code == 0
    assert "--json" in shown.output


def test_every_script_runs_with_all_and_has_its_place_in_the_docs() -> None:
    scripts = {path.stem for path in Path(every.__file__).parent.glob("[!_]*.py")} - {"all"}
    assert scripts == set(every.BENCHMARKS)
    page = PAGE.read_text()
    for name in scripts:
        assert f"| `{name}` |" in page
        assert replace(page, name, "the figures").count("the figures") == page.count("the figures") + 1


@pytest.mark.parametrize("name", every.BENCHMARKS)
def test_quick_arguments_are_options_of_the_script(name: str) -> None:
    command, quick = every.BENCHMARKS[name]
    command.make_context(name, [*quick])


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
    assert written["command"].startswith("python -m benchmarks.sample --rounds 2")
    assert written["machine"]["cores"] == machine().cores
    assert written["tables"][0]["rows"] == [["rounds", "2"]]


def test_a_cell_does_not_break_its_table() -> None:
    assert str(Table("T", ("a",), [("x|y",)])).splitlines()[-1] == "| x\\|y |"


def test_figures_of_a_busy_machine_are_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (7.0, 0.0, 0.0))
    monkeypatch.setattr(every, "BENCHMARKS", {})  # nothing is started, whatever happens
    machine.cache_clear()
    try:
        refused = CliRunner().invoke(every.main, ["--write-docs"])
    finally:
        machine.cache_clear()
    assert refused.exit_code == 1
    assert "--even-if-busy" in refused.output


def test_only_what_is_between_the_markers_is_replaced() -> None:
    page = "before\n<!-- start -->\nold\n<!-- /start -->\nafter\n<!-- cancel -->\nkept\n<!-- /cancel -->\n"
    assert replace(page, "start", "new") == page.replace("old\n", "\nnew\n\n")


def test_a_page_without_the_markers_is_an_error() -> None:
    with pytest.raises(NoMarkers, match="<!-- start -->"):
        replace("nothing here <!-- start -->\n", "start", "new")
