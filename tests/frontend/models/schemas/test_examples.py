"""Values that fit schemas."""

from __future__ import annotations

from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator

from msx_frontend.models.schemas.examples import NoExample, example_of


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "minLength": 6, "maxLength": 8}, "textxx"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "string", "format": "date-time"}, "2026-01-01T00:00:00Z"),
        ({"type": "string", "enum": ["a", "b"]}, "a"),
        ({"const": 3}, 3),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "maximum": -5}, -5),
        ({"type": "integer", "exclusiveMinimum": 7}, 8),
        ({"type": "integer", "multipleOf": 4}, 4),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "number", "exclusiveMaximum": 0}, -1.0),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "integer", "default": 9}, 9),
        ({"type": "integer", "examples": [4, 5]}, 4),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 0}, []),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2}, [1, "text"]),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "text"),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
            {"a": 1},
        ),
        ({"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}, {"a": 1, "b": "text"}),
        ({"type": "object"}, {}),
        ({}, None),
    ],
)
def test_it_fits(schema: dict[str, Any], example: object) -> None:
    assert example_of(schema, {}) == example
    OAS31Validator(schema).validate(example)


NODE = {"$ref": "#/components/schemas/Node"}


def test_names_of_components_are_followed() -> None:
    node = {"type": "object", "properties": {"next": NODE, "value": {"type": "integer"}}}
    assert example_of(NODE, {"Node": node}) == {}
    assert example_of(node, {"Node": node}) == {"next": {}, "value": 1}


@pytest.mark.parametrize("target", ["#/components/schemas/Gone", "https://example.com/Node", "#/$defs/Node"])
def test_what_is_not_known_has_no_example(target: str) -> None:
    with pytest.raises(NoExample):
        example_of({"$ref": target}, {"Node": {}})


def test_what_needs_itself_has_no_example() -> None:
    with pytest.raises(NoExample):
        example_of(NODE, {"Node": {"type": "object", "required": ["next"], "properties": {"next": NODE}}})
