"""JSON schemas of types, for descriptions of a model."""

import logging
from typing import Any, Literal

import msgspec

from msx_core.json_schema import Schema, subschemas
from msx_core.typed.arrays import is_array
from msx_core.typed.hints import alternatives, is_pydantic

log = logging.getLogger("msx.worker")

Mode = Literal["validation", "serialization"]

ARRAY = "An array: numbers in nested lists, as many levels as it has dimensions; in MessagePack also extension type 1"
ROWS = "A number, or a list of what one is less deep"
_NUMBERS: Schema = {
    "anyOf": [{"type": "array", "items": {"description": ROWS}}, {"type": "number"}, {"type": "boolean"}],
    "description": ARRAY,
}
"""An array without dimensions is its number."""


def schema_of(kind: Any, mode: Mode = "validation") -> Schema | None:
    """Schema of a type, with `$defs` for the types within. None for a type that has none; the log says why."""
    try:
        if any(map(is_pydantic, alternatives(kind))):
            return _of_pydantic(kind, mode)
        return msgspec.json.schema(kind, schema_hook=_foreign)
    except Exception as error:  # a type of the user's: whatever its hooks raise
        log.warning("%s has no JSON schema, so that it is not described: %s", kind, error)
        return None


def is_closed(schema: Schema) -> bool:
    """Whether the type bounds the depth of its values: no member takes anything, and none is within itself."""
    if any(_takes_anything(one) for _, one in subschemas(schema)):
        return False
    definitions = schema.get("$defs", {})
    uses = {name: _references(one) for name, one in definitions.items()}
    return not any(_reaches(name, name, uses) for name in uses)


def _takes_anything(one: Schema) -> bool:
    if one.get("description") in (ARRAY, ROWS) or one.keys() & {"$ref", "anyOf", "oneOf", "allOf", "enum", "const"}:
        return False
    match one.get("type"):
        case None:
            return True
        case "array":
            return not one.keys() & {"items", "prefixItems"} and one.get("maxItems") != 0
        case "object":
            return "properties" not in one and not isinstance(one.get("additionalProperties"), dict)
    return False


def _references(schema: Schema) -> set[str]:
    found = (one.get("$ref") for _, one in subschemas(schema))
    return {reference.rpartition("/")[2] for reference in found if isinstance(reference, str)}


def _reaches(start: str, wanted: str, uses: dict[str, set[str]]) -> bool:
    seen, waiting = set[str](), [start]
    while waiting:
        for name in uses.get(waiting.pop(), set()) - seen:
            if name == wanted:
                return True
            seen.add(name)
            waiting.append(name)
    return False


def _of_pydantic(kind: Any, mode: Mode) -> Schema:
    from pydantic import TypeAdapter

    schema: Schema = TypeAdapter(kind).json_schema(mode=mode)
    return schema


def _foreign(kind: Any) -> Schema:
    if is_array(kind):
        return {**_NUMBERS}
    if is_pydantic(kind):
        made = _of_pydantic(kind, "validation")
        return made if "$defs" not in made else {"type": "object"}  # whose references would lead nowhere
    raise NotImplementedError
