"""docs/from-llm-serving.md has a row for each key of llm-serving's yaml, and names what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msx_archiver.llm_serving.graphs import LITE, PAGED, PAGED_INPUTS
from msx_archiver.llm_serving.report import FATES

PAGE = (Path(__file__).parents[2] / "docs" / "from-llm-serving.md").read_text()


def quoted(section: str, cell: int) -> set[str]:
    """Quoted words of a section's table, in the cells of this number."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[cell] for line in text.splitlines() if line.startswith("| ")]
    return {name for one in cells for name in re.findall(r"`([^`]+)`", one)}


@pytest.mark.parametrize("key", FATES)
def test_each_key_has_a_row(key: str) -> None:
    section, _, name = key.partition(".")
    assert {name, section} & quoted("The server", 1)


def test_each_row_has_a_key() -> None:
    assert quoted("The server", 1) <= {part for key in FATES for part in key.split(".")}


def test_each_input_and_operator_that_is_refused() -> None:
    assert {*PAGED_INPUTS, *LITE, *PAGED} - {"PagedAttentionMask"} <= quoted("Its files", 1)
