"""A JSON value that fits a schema, for people who look for the first time: small, and the same each time."""

from collections.abc import Mapping
from typing import Any

from msx_frontend.models.schemas.shared import PLACE

DEEPEST = 8
"""Most levels of values in values: a schema may refer to itself."""


class NoExample(LookupError):
    """The schema refers to something that is not known here, or to itself without end."""


def example_of(schema: Mapping[str, Any], components: Mapping[str, Any], depth: int = 0) -> Any:
    """`components` are the schemas that the names behind `#/components/schemas/` stand for.

    What the schema gives itself (`example`, `examples`, `default`, `const`, `enum`) is used first. A value is made from
    types and the usual limits; a `pattern` is not followed. Raises NoExample.
    """
    if depth > DEEPEST:
        raise NoExample
    if "$ref" in schema:
        return example_of(_target(str(schema["$ref"]), components), components, depth + 1)
    if given := _given(schema):
        return given[0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return example_of(_first(schema[choice]), components, depth + 1)
    return _made(schema, components, depth)


def _target(reference: str, components: Mapping[str, Any]) -> Mapping[str, Any]:
    name = reference.removeprefix(PLACE)
    if name == reference or name not in components:
        raise NoExample
    found: Mapping[str, Any] = components[name]
    return found


def _given(schema: Mapping[str, Any]) -> list[Any]:
    own = [schema[name] for name in ("example", "default", "const") if schema.get(name) is not None]
    return [*own, *schema.get("examples", ())[:1], *schema.get("enum", ())[:1]]


def _first(choices: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """First choice that is not null."""
    return next((one for one in choices if one.get("type") != "null"), choices[0])


def _made(schema: Mapping[str, Any], components: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type") or ("object" if "properties" in schema else "null")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object":
        return _object(schema, components, depth)
    if kind == "array":
        return _array(schema, components, depth)
    if kind == "string":
        return _text(schema)
    return _number(schema, kind) if kind in ("integer", "number") else True if kind == "boolean" else None


def _object(schema: Mapping[str, Any], components: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Example of an object's required members; of the outermost object all, where none is required."""
    members = schema.get("properties", {})
    wanted = schema.get("required") or (() if depth else members)
    return {name: example_of(members.get(name, {}), components, depth + 1) for name in wanted}


def _array(schema: Mapping[str, Any], components: Mapping[str, Any], depth: int) -> list[Any]:
    made = [example_of(one, components, depth + 1) for one in schema.get("prefixItems", ())]
    fewest, most = schema.get("minItems", 1), schema.get("maxItems", 1 << 30)
    while len(made) < min(fewest, 100, most):
        made.append(example_of(schema.get("items") or {}, components, depth + 1))
    return made


def _text(schema: Mapping[str, Any]) -> str:
    text: str = _FORMATS.get(schema.get("format", ""), "text")
    return text.ljust(min(schema.get("minLength", 0), 1000), "x")[: schema.get("maxLength")]


_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def _number(schema: Mapping[str, Any], kind: str) -> float:
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    value: float = 1 if kind == "integer" else 1.0
    if above is not None and value <= above:
        value = above + 1
    if least is not None and value < least:
        value = least
    if most is not None and value > most:
        value = most
    if below is not None and value >= below:
        value = below - 1 if kind == "integer" else (below + (above if above is not None else below - 2)) / 2
    step = schema.get("multipleOf")
    return value if step is None else -(-value // step) * step
