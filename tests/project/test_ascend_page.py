"""docs/ascend.md has each operator that the engine calls on an NPU, and names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ascend.md").read_text()
OPERATORS = ROOT / "backend" / "msx_llm" / "kernels" / "ascend" / "operators.py"
TESTS = ROOT / "tests" / "llm"


def called() -> list[str]:
    """`__all__`, read without MindSpore."""
    for node in ast.parse(OPERATORS.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{OPERATORS.name} has no __all__")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table behind a heading."""
    part = PAGE.split(f"{heading}\n", 1)[1].split("\n#", 1)[0]
    found = [line.strip("|").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return found[1:]


def test_each_operator_has_one_row() -> None:
    named = [name for row in rows("## Operators") for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(called())


def test_no_cell_is_missing() -> None:
    assert {len(row) for row in rows("## Operators")} == {5}
    assert {len(row) for row in rows("### Faults that a CPU does not show")} == {3}


@pytest.mark.parametrize("row", rows("### Faults that a CPU does not show"), ids=lambda row: row[0].strip()[:40])
def test_each_fault_has_a_test_that_is_there(row: list[str]) -> None:
    named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", row[2])
    assert named
    for file, function in named:
        found = functions_of(ROOT / file if file.startswith("tests/") else TESTS / file)
        assert function in found if function else found, f"{file} has no {function}"


def functions_of(file: Path) -> set[str]:
    """Its tests."""
    names = {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}
    return {name for name in names if name.startswith("test_")}


FILE = re.compile(r"`[\w/]+\.py`(?:@[0-9a-f]{8})?")
NOWHERE = {"GroupedMatmulV4", "WeightQuantBatchMatmul"}
"""Operators with a form that neither stack has."""


@pytest.mark.parametrize("row", rows("## Operators"), ids=lambda row: row[0].strip())
def test_each_call_says_whose_code_has_its_form(row: list[str]) -> None:
    """By file and commit: of the two stacks that the page names, or of another commit behind the file."""
    own = re.findall(r"`(\w+)`", row[0])
    parts = [part.strip() for part in row[2].split(";")]
    assert ("nowhere" in row[2]) == bool(NOWHERE.intersection(own))
    for part in parts:
        assert "nowhere, MindSpore's definition" in part or (re.search(r"\b[VM] `", part) and FILE.search(part)), part


def test_the_page_says_which_commits_it_means() -> None:
    assert re.search(r"V is vllm-mindspore at [0-9a-f]{8} .*\bM mindformers at [0-9a-f]{8}", PAGE)
