"""docs/families.md says what the engine says of each family."""

from __future__ import annotations

from msx_llm.models.registry import FAMILIES
from tests.llm.family_table import BEGIN, END, LIKE, PAGE, given_of, table


def test_the_page_has_the_table() -> None:
    shown = PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == table().strip(), "write it by python -m tests.llm.family_table"


def test_each_family_is_compared_with_transformers() -> None:
    assert [kind for kind in FAMILIES if not given_of(LIKE.get(kind, kind))] == []
