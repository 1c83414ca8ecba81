"""docs/torchserve-contract.md and the tests that assert it: each section has a test, and each citation a section."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msx_frontend.apis.openapi.family import openapi
from tests.frontend.apis.families import of_listener
from tests.loops import run
from tests.net.http.client import FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "torchserve-contract.md"
SUITE = TESTS / "contract" / "torchserve"
CITATION = re.compile(r"contract#([\w-]+)")


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def anchor_of(section: str) -> str:
    return anchor(section.partition("\n")[0])


def status_of(call: str) -> int:
    """Status of a call to the inference listener, without keys."""
    method, path = call.split(" ", 1)
    families = of_listener("inference")
    edge = exchange_of(openapi("MSX inference API", families, lambda: (), None), *families, log=FakeAccessLog())
    return run(ask(edge, method, path, b"")).status


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


@pytest.mark.parametrize("section", re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:], ids=anchor_of)
def test_each_status_that_a_section_says_of_a_route_is_what_the_route_answers(section: str) -> None:
    """Under **Here**, where TorchServe's is another."""
    said = dict(re.findall(r"`((?:GET|POST|PUT|DELETE) /[^`]*)` is (\d{3})", section))
    assert {call: status_of(call) for call in said} == {call: int(status) for call, status in said.items()}


def test_anchors_are_those_of_github() -> None:
    assert anchor("model-config.yaml") == "model-configyaml"
    assert anchor("Errors of handlers") == "errors-of-handlers"
