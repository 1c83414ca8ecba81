"""JSON schemas as data: the schemas within a schema, and the keywords that a grammar cannot enforce."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

MOST_LEVELS = 100
"""The deepest nesting of objects and lists: grammar compilers recurse into all of them."""
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose values are objects of schemas by name."""
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems")
COUNTED = ("minProperties", "maxProperties")
"""Keywords that a grammar can enforce if each of `properties` is required."""
UNHELD = (
    *("uniqueItems", "not", "if", "then", "else", "contains", "minContains", "maxContains", "unevaluatedItems"),
    *("dependentRequired", "dependentSchemas", "propertyNames", "unevaluatedProperties", *COUNTED),
)
"""Keywords that llguidance, which both engines of language models use, ignores if it is told to be lenient."""

Schema = dict[str, Any]


def too_deep(value: Any) -> bool:
    """Whether objects and lists are nested more than MOST_LEVELS deep."""
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def subschemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The schema and all schemas within it, each with its path: "", ".properties.a", ".anyOf[1]"."""
    waiting: list[tuple[str, Any]] = [("", schema)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, dict):
            yield path, one
            waiting += reversed([(path + place, inner) for place, inner in _within(one)])


def not_held(schema: Schema, keywords: Collection[str]) -> list[str]:
    """The paths of `keywords` that this schema has."""
    return [
        f"{path}.{keyword}"
        for path, one in subschemas(schema)
        for keyword in one
        if keyword in keywords and (keyword not in COUNTED or _has_optional(one))
    ]


def with_references(schema: Schema, rename: Callable[[str], str]) -> Schema:
    """A copy of the schema with other `$ref`s. `schema` must not be `too_deep`."""
    copy = dict(schema)
    if isinstance(reference := schema.get("$ref"), str):
        copy["$ref"] = rename(reference)
    for key in schema.keys() & {*NAMED}:
        copy[key] = {name: _copied(one, rename) for name, one in _named(schema[key])}
    for key in schema.keys() & {*LISTED}:
        copy[key] = [_copied(one, rename) for one in _listed(schema[key])]
    for key in schema.keys() & {*SINGLE}:
        one = schema[key]
        copy[key] = [_copied(it, rename) for it in one] if isinstance(one, list) else _copied(one, rename)
    return copy


def _copied(value: Any, rename: Callable[[str], str]) -> Any:
    return with_references(value, rename) if isinstance(value, dict) else value


def _within(schema: Schema) -> Iterator[tuple[str, Any]]:
    for key in NAMED:
        yield from ((f".{key}.{name}", one) for name, one in _named(schema.get(key)))
    for key in (*LISTED, *SINGLE):
        value = schema.get(key)
        yield from ((f".{key}[{number}]", one) for number, one in enumerate(_listed(value)))
        if isinstance(value, dict):
            yield f".{key}", value


def _named(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _inside(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for one in inner if isinstance(one, (dict, list))]


def _has_optional(schema: Schema) -> bool:
    required = schema.get("required")
    return bool({name for name, _ in _named(schema.get("properties"))} - {str(name) for name in _listed(required)})
