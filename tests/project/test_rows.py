"""Rows of the pages for those who move here, and the tests that hold them.

`rows/PAGE.yaml` names the tests that fail when what a row says is no longer so, by the heading above the table and by
the row's first cell without backticks and links (where several rows have it, with the second). A test that only reads
the page holds nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from msx_core.safe_yaml import read_yaml
from tests.rows import ROOT, named_tests, rows

HELD = Path(__file__).parent / "rows"
PAGES = sorted(path.stem for path in HELD.glob("*.yaml"))
TESTS_PER_FILE = """
def test_one(): ...
async def test_two(): ...
class TestThem:
    def test_three(self): ...
def help(): ...
"""


def held(page: str) -> dict[str, dict[str, list[str]]]:
    return cast(dict[str, dict[str, list[str]]], read_yaml(HELD / f"{page}.yaml"))


def names(page: str) -> list[str]:
    return [test for table in held(page).values() for tests in table.values() for test in tests]


def entries(tables: dict[str, Any]) -> set[tuple[str, str]]:
    return {(heading, row) for heading, table in tables.items() for row in table}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_each_row_is_held(page: str) -> None:
    """Each has an entry, and each entry names a test."""
    said = rows((ROOT / "docs" / f"{page}.md").read_text())
    named = {(heading, row) for heading, table in held(page).items() for row, tests in table.items() if tests}
    missing = sorted(entries(said) - named)
    assert missing == [], f"tests/project/rows/{page}.yaml names no test of {missing}"


def test_each_entry_has_a_row(page: str) -> None:
    said = rows((ROOT / "docs" / f"{page}.md").read_text())
    gone = sorted(entries(held(page)) - entries(said))
    assert gone == [], f"docs/{page}.md has no row {gone} of tests/project/rows/{page}.yaml"


def test_rows_of_one_table_differ(page: str) -> None:
    said = rows((ROOT / "docs" / f"{page}.md").read_text())
    assert {heading: [row for row in table if table.count(row) > 1] for heading, table in said.items()} == {
        heading: [] for heading in said
    }


def test_each_test_exists(page: str) -> None:
    assert [name for name in names(page) if name.partition("::")[2] not in named_tests(name.partition("::")[0])] == []


def test_first_cells_are_read_below_their_headings() -> None:
    page = (
        "## A\n\n| `a` | b |\n|---|---|\n| `x[/y\\|z]`, [w](w.md) | 1 |\n\ntext\n```\n# no\n| n |\n|---|\n| o |\n```\n"
    )
    assert rows(page + "### `B`\n| c |\n|---|\n| d |\n") == {"A": ["x[/y|z], w"], "B": ["d"]}


def test_rows_with_the_same_first_cell_are_told_by_the_second() -> None:
    assert rows("# A\n| a | b |\n|---|---|\n| GET | `/x` |\n| GET | `/y` |\n| PUT | `/x` |\n") == {
        "A": ["GET /x", "GET /y", "PUT"]
    }


def test_tests_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(TESTS_PER_FILE)
    assert named_tests(str(file)) == {"test_one", "test_two", "TestThem::test_three"}
    assert named_tests(str(tmp_path / "test_no.py")) == frozenset()
