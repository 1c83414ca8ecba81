from __future__ import annotations

import pytest

from msx_llm.sampling.grammar import grammar
from msx_sdk import InvalidInput
from msx_sdk.generation import Constraint


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        ("json_schema", "", "constraint: the json_schema is not JSON"),
        ("json_schema", "{", "constraint: the json_schema is not JSON"),
        ("json_schema", "[" * 100_000, "constraint: the json_schema is not JSON"),
        ("json_schema", "[1]", "constraint: the json_schema is not a JSON object"),
        ("json_schema", "false", "constraint: the json_schema is not a JSON object"),
        ("choice", "yes", "constraint: the choice is not JSON"),
        ("choice", "[]", "constraint: the choice is not a JSON list of one or more texts"),
        ("choice", '["a", 1]', "constraint: the choice is not a JSON list of one or more texts"),
        ("choice", '["a", ""]', "none of them empty"),
        ("choice", '"ab"', "constraint: the choice is not a JSON list of one or more texts"),
        ("regex", "", "constraint: the regex is empty"),
        ("lark", "", "constraint: the lark is empty"),
    ],
)
def test_values_of_the_wrong_form(kind: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        grammar(Constraint(kind=kind, value=value))  # type: ignore[arg-type]
