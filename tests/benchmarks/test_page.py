"""docs/benchmarks.md: each figure that readers see stands in the tables that a run wrote, with its target."""

from __future__ import annotations

import re

import pytest

from benchmarks.cli.names import NAMES
from benchmarks.reports.docs import PAGES, page_of

PAGE = (PAGES.parent / "benchmarks.md").read_text()
ROWS = re.findall(r"^\| \[`([\w-]+)`\]\(benchmarks/([\w-]+)\.md#([\w-]+)\) \| (.*) \|$", PAGE, re.MULTILINE)


def test_each_benchmark_has_a_row_that_leads_to_its_tables() -> None:
    assert {name for name, *_ in ROWS} == {*NAMES}
    for name, page, anchor, _ in ROWS:
        assert (page_of(name).stem, name) == (page, anchor)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_its_figures_are_those_of_a_run(row: tuple[str, str, str, str]) -> None:
    name, _, _, cells = row
    _, measured, target, _ = cells.split(" | ")
    figures = [figure.strip("*") for figure in measured.split("; ")]
    written = page_of(name).read_text().partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
    targets = re.findall(
        r"^\|.*\| *([\d.,%]+)(?: \(.*\))? *\| *([<>≤≥]? ?[\d.,]+%?(?: MB)?) *\| (?:yes|NO) +\|$", written, re.M
    )
    if not targets:
        assert figures in (["no figure"], ["see there"]), name
        return
    assert [figure for figure in figures if figure not in {one for one, _ in targets}] == []
    assert any(one.strip() in target for figure, one in targets if figure in figures), target
