from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_frontend.generation.constraint import constraint_of
from msx_frontend.generation.decoding import decode
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.sampling import SamplingFields
from msx_sdk.generation import Capabilities, Constraint
from tests.frontend.generation.speaker import ALL

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
WRITTEN = '{"type":"object","properties":{"a":{"type":"integer"}}}'


def constraint(offered: Capabilities = ALL, **fields: Any) -> Constraint | None:
    return constraint_of(decode(msgspec.json.encode(fields), SamplingFields), offered)


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}},
        {"response_format": {"type": "json_schema", "name": "x", "schema": SCHEMA}},
        {"response_format": {"type": "json_schema", "value": {"name": "x", "schema": SCHEMA}}},
        {"response_format": {"type": "json_object", "value": SCHEMA}},
        {"response_format": {"type": "json", "value": WRITTEN}},
        {"guided_json": SCHEMA},
        {"guided_json": WRITTEN},
        {"structured_outputs": {"json": SCHEMA}},
    ],
)
def test_a_schema_in_all_its_places(fields: dict[str, Any]) -> None:
    assert constraint(**fields) == Constraint(kind="json_schema", value=WRITTEN)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": None}, None),
        ({"response_format": {"type": "json_object"}}, Constraint(kind="json_object")),
        ({"structured_outputs": {"json_object": True}}, Constraint(kind="json_object")),
        ({"response_format": {"type": "regex", "value": "a+"}}, Constraint(kind="regex", value="a+")),
        ({"guided_regex": "a+"}, Constraint(kind="regex", value="a+")),
        ({"structured_outputs": {"regex": "a+"}}, Constraint(kind="regex", value="a+")),
        ({"guided_choice": ["a", "b"]}, Constraint(kind="choice", value='["a","b"]')),
        ({"structured_outputs": {"choice": ["a"]}}, Constraint(kind="choice", value='["a"]')),
        ({"guided_grammar": "start: A"}, Constraint(kind="lark", value="start: A")),
        ({"structured_outputs": {"grammar": "start: A"}}, Constraint(kind="lark", value="start: A")),
    ],
)
def test_the_other_kinds(fields: dict[str, Any], expected: Constraint | None) -> None:
    assert constraint(**fields) == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"response_format": {"type": "xml"}}, "response_format.type: expected text, json_object or json_schema"),
        ({"response_format": {}}, "response_format.type: expected"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema: expected a JSON schema"),
        ({"guided_json": "{"}, "guided_json: expected a JSON schema: "),
        ({"guided_choice": []}, "guided_choice: expected at least one text"),
        ({"guided_choice": ["a", ""]}, "guided_choice: expected at least one text"),
        ({"guided_regex": ""}, "guided_regex: expected a text of at least one character"),
        ({"guided_regex": "a", "guided_choice": ["b"]}, "guided_regex: not together with guided_choice"),
    ],
)
def test_a_malformed_one_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongParameter) as wrong:
        constraint(**fields)
    assert wrong.value.message.startswith(message)


def test_one_that_the_model_cannot_keep_to() -> None:
    able = Capabilities(generate=True, constraints=("regex", "choice"))
    with pytest.raises(WrongParameter, match=r"guided_json: .* of the kind json_schema \(it can: regex, choice\)"):
        constraint(able, guided_json=SCHEMA)
    with pytest.raises(WrongParameter, match=r"\(it can: none\)"):
        constraint(Capabilities(), guided_regex="a")
