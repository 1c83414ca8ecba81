"""docs/torchserve-contract.md and the tests that assert it: each section has a test, and each citation a section."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "torchserve-contract.md"
SUITE = TESTS / "contract" / "torchserve"
CITATION = re.compile(r"contract#([\w-]+)")


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def sections() -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)}


def cited(path: Path) -> set[str]:
    return set(CITATION.findall(path.read_text()))


def test_each_cited_section_exists() -> None:
    found = {name for path in TESTS.rglob("*.py") if path != Path(__file__) for name in cited(path)}
    assert sorted(found - sections()) == []


def test_each_section_is_cited_by_a_test() -> None:
    found = {name for path in SUITE.glob("test_*.py") for name in cited(path)}
    assert sorted(sections() - found) == []


def test_each_module_of_the_suite_cites_a_section() -> None:
    assert [path.name for path in sorted(SUITE.glob("test_*.py")) if not cited(path)] == []


def test_anchors_are_those_of_github() -> None:
    assert anchor("model-config.yaml") == "model-configyaml"
    assert anchor("Errors of handlers") == "errors-of-handlers"
