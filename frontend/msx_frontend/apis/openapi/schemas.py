"""JSON schemas of the document, and where shared ones stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from msx_frontend.errors import ServiceError
from msx_frontend.net.http.family import Family, JsonSchema

Schema = dict[str, Any]

JSON_TYPE = "application/json"
ANYTHING: Schema = {}


class Components:
    """What several operations refer to by `$ref`."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self.responses: dict[str, Schema] = {}

    def schema(self, schema: JsonSchema | type[msgspec.Struct], prefix: str) -> Schema:
        """A schema, of which `$defs` become components: a reference in a document is relative to the whole of it."""
        if isinstance(schema, type):
            schema = msgspec.json.schema(schema)
        own = {name: value for name, value in schema.items() if name != "$defs"}
        names = {name: self._name(f"{prefix}{name}", value) for name, value in schema.get("$defs", {}).items()}
        for name, value in schema.get("$defs", {}).items():
            self.schemas[names[name]] = _referring(value, names)
        made: Schema = _referring(own, names)
        return made

    def error(self, family: Family) -> Schema:
        """A reference to the response that all errors of a family have."""
        name = f"{prefix_of(family)}Error"
        if name not in self.responses:
            self.responses[name] = self._error(name, family)
        return {"$ref": f"#/components/responses/{name}"}

    def _error(self, name: str, family: Family) -> Schema:
        failure = family.failure(ServiceError("an example"))
        if not failure.body:
            return {"description": "An error"}
        self.schemas[name] = schema_of(msgspec.json.decode(failure.body))
        content = {JSON_TYPE: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        return {"description": f"An error, as {family.name} has it", "content": content}

    def _name(self, wanted: str, value: object) -> str:
        """A name that nothing else has."""
        name, number = wanted, 2
        while name in self.schemas:
            name, number = f"{wanted}{number}", number + 1
        self.schemas[name] = {}  # it is taken
        return name

    def to_builtins(self) -> Schema:
        parts = {"schemas": self.schemas, "responses": self.responses}
        return {name: part for name, part in parts.items() if part}


def prefix_of(family: Family) -> str:
    """A family's name as a part of names of components."""
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", family.name))


def _referring(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: f"#/components/schemas/{names[one.rpartition('/')[2]]}"
            if key == "$ref" and isinstance(one, str)
            else _referring(one, names)
            for key, one in value.items()
        }
    return [_referring(one, names) for one in value] if isinstance(value, list) else value


def schema_of(example: object) -> Schema:
    """Of a JSON value like this one. What is null in it is a text elsewhere."""
    match example:
        case dict():
            members = {str(name): schema_of(value) for name, value in example.items()}
            return {"type": "object", "required": [*members], "properties": members}
        case list():
            return {"type": "array", "items": schema_of(example[0]) if example else ANYTHING}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case None:
            return {"type": ["string", "null"]}
        case _:
            return {"type": "string"}
