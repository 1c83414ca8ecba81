from __future__ import annotations

from typing import Any

import pytest

from msx_core.json_schema import MOST_LEVELS, not_held, subschemas, too_deep, with_references

SCHEMA: dict[str, Any] = {
    "properties": {
        "a": {"type": "array", "uniqueItems": True, "items": {"not": {"const": 1}}},
        "uniqueItems": {"type": "string", "enum": [{"not": 1}]},
    },
    "anyOf": [{"required": ["a"]}, {"if": {}, "then": {"uniqueItems": True}}],
    "$defs": {"D": {"minProperties": 1, "properties": {"x": {}}}},
    "default": {"not": 1},
}


def test_the_schemas_within_a_schema() -> None:
    assert {path for path, _ in subschemas(SCHEMA)} == {
        "",
        ".properties.a",
        ".properties.a.items",
        ".properties.a.items.not",
        ".properties.uniqueItems",
        ".anyOf[0]",
        ".anyOf[1]",
        ".anyOf[1].if",
        ".anyOf[1].then",
        ".$defs.D",
        ".$defs.D.properties.x",
    }


def test_keywords_are_found_where_schemas_are_and_not_in_data_or_names() -> None:
    assert not_held(SCHEMA, ("uniqueItems", "not", "minProperties")) == [
        ".properties.a.uniqueItems",
        ".properties.a.items.not",
        ".$defs.D.minProperties",
        ".anyOf[1].then.uniqueItems",
    ]
    assert not_held(SCHEMA, ()) == []


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"minProperties": 1}, False),
        ({"minProperties": 1, "properties": {"a": {}}, "required": ["a"]}, False),
        ({"minProperties": 1, "properties": {"a": {}, "b": {}}, "required": ["a"]}, True),
    ],
)
def test_a_number_of_properties_is_held_where_all_are_required(schema: dict[str, Any], found: bool) -> None:
    assert bool(not_held(schema, ("minProperties",))) is found


def test_references_are_renamed_and_data_is_not() -> None:
    schema = {
        "$ref": "#",
        "properties": {"$ref": {"$ref": "#/$defs/A"}, "b": {"enum": [{"$ref": "#"}]}},
        "items": [{"$ref": "#"}],
        "anyOf": [{"$ref": "x"}],
    }
    assert with_references(schema, lambda reference: f"<{reference}>") == {
        "$ref": "<#>",
        "properties": {"$ref": {"$ref": "<#/$defs/A>"}, "b": {"enum": [{"$ref": "#"}]}},
        "items": [{"$ref": "<#>"}],
        "anyOf": [{"$ref": "<x>"}],
    }


@pytest.mark.parametrize(("levels", "deep"), [(MOST_LEVELS, False), (MOST_LEVELS + 1, True), (100_000, True)])
def test_how_deep_is_too_deep(levels: int, deep: bool) -> None:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    assert too_deep(value) is deep
