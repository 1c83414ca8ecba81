"""JSON schemas of the document, and where shared ones stand."""

import re
from collections.abc import Mapping
from types import UnionType
from typing import Any

import msgspec

from msx_core.service_errors import BadRequest
from msx_frontend.models.schemas.body import JSON_TYPE
from msx_frontend.models.schemas.shared import PLACE, Schema, SharedSchemas
from msx_net.http.family import Family, JsonSchema

__all__ = ["ANYTHING", "EVENTS_TYPE", "LINES_TYPE", "Components", "Schema", "prefix_of", "schema_of"]

ANYTHING: Schema = {}
EVENTS_TYPE = "text/event-stream"
LINES_TYPE = "application/x-ndjson"


class Components(SharedSchemas):
    """Schemas and responses that several operations refer to by `$ref`."""

    def __init__(self) -> None:
        super().__init__()
        self.responses: dict[str, Schema] = {}

    def schema(self, schema: JsonSchema | type[Any] | UnionType, prefix: str) -> Schema:
        """A struct that a family has in several places is one component.

        Raises ValueError for two structs of a family that have one name.
        """
        if isinstance(schema, Mapping):
            return self.share(schema, prefix)
        (made,), own = msgspec.json.schema_components([schema], ref_template=f"{PLACE}{prefix}{{name}}")
        for name, value in own.items():
            titled = {**value, "title": f"{prefix}{name}"}
            if self.schemas.setdefault(f"{prefix}{name}", titled) != titled:
                raise ValueError(f"Two structs of {prefix} are called {name}.")
        return made

    def error(self, family: Family) -> Schema:
        """A reference to the response that all errors of a family have."""
        name = f"{prefix_of(family)}Error"
        if name not in self.responses:
            self.responses[name] = self._error(name, family)
        return {"$ref": f"#/components/responses/{name}"}

    def _error(self, name: str, family: Family) -> Schema:
        failure = family.failure(BadRequest("an example"))  # OpenAI's `code` of it is null: the schema allows that, too
        if not failure.body:
            return {"description": "An error"}
        self.schemas[name] = schema_of(msgspec.json.decode(failure.body))
        content = {JSON_TYPE: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        return {"description": f"An error, as {family.name} has it", "content": content}

    def to_builtins(self) -> Schema:
        parts = {"schemas": self.schemas, "responses": self.responses}
        return {name: part for name, part in parts.items() if part}


def prefix_of(family: Family) -> str:
    """A family's name as a part of names of components."""
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", family.name))


def schema_of(example: object) -> Schema:
    """JSON Schema of a value like this one. A null in it stands for a text."""
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
            return {"anyOf": [{"type": "string"}, {"type": "null"}]}
        case _:
            return {"type": "string"}
