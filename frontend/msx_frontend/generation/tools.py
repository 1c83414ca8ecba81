"""The tools of a request: what the template is given, and the schemas that apply to the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from msx_core.generation import Constraint
from msx_core.json_schema import Schema, with_references
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.schemas import Held, constraint, schema_of

Mode = Literal["none", "auto", "required", "named"]
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
ANYTHING: Schema = {"type": "object"}


@dataclass(frozen=True)
class Tools:
    """`schemas`: a tool's name to the JSON schema of its arguments, {} where it gave none."""

    mode: Mode = "none"
    offered: list[dict[str, Any]] = field(default_factory=list)
    schemas: dict[str, Schema] = field(default_factory=dict)
    named: str = ""
    parallel: bool = True
    strict: frozenset[str] = frozenset()
    """The names of tools whose schema must apply as it is."""

    @property
    def for_template(self) -> list[dict[str, Any]] | None:
        return None if self.mode == "none" else self.offered

    @property
    def constraint(self) -> Constraint | None:
        """A schema: of a named call its arguments alone; of required calls a list of names and arguments."""
        if self.mode == "named":
            return constraint(self.schemas[self.named] or ANYTHING)
        return constraint(self._calls_schema()) if self.mode == "required" else None

    @property
    def held(self) -> list[Held]:
        """The schemas that apply to the text."""
        if self.constraint is None:
            return []
        numbered = enumerate(self.schemas.items())
        return [
            Held(f"tools[{number}].function.parameters", schema, name in self.strict)
            for number, (name, schema) in numbered
            if self.mode == "required" or name == self.named
        ]

    def _calls_schema(self) -> Schema:
        """Each tool's own schema is a definition, and its references are from there."""
        calls = [_call_schema(name) for name in self.schemas]
        schema: Schema = {"type": "array", "minItems": 1, "items": calls[0] if len(calls) == 1 else {"anyOf": calls}}
        if not self.parallel:
            schema["maxItems"] = 1
        return {**schema, "$defs": {name: _definition(name, one) for name, one in self.schemas.items()}}


def tools_of(offered: list[dict[str, Any]] | None, choice: Any, parallel: bool | None) -> Tools:
    """Raises WrongParameter, which names the tool."""
    if not offered:
        if choice not in (None, "none", "auto"):
            raise WrongParameter("tool_choice", "only together with tools")
        return Tools()
    schemas = dict(_function(f"tools[{number}]", tool) for number, tool in enumerate(offered))
    mode, named = _choice(choice, schemas)
    strict = frozenset(tool["function"]["name"] for tool in offered if tool["function"].get("strict") is True)
    return Tools(mode, offered, schemas, named, parallel is not False, strict)


def _function(place: str, tool: dict[str, Any]) -> tuple[str, Schema]:
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, dict):
        raise WrongParameter(place, 'expected {"type": "function", "function": {"name": …, "parameters": …}}')
    name, schema = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise WrongParameter(f"{place}.function.name", "expected up to 128 letters, digits and _ . -")
    return name, {} if schema is None else schema_of(f"{place}.function.parameters", schema)


def _choice(choice: Any, schemas: dict[str, Schema]) -> tuple[Mode, str]:
    if choice in (None, "auto"):
        return "auto", ""
    if choice == "none":
        return "none", ""
    if choice == "required":
        return "required", ""
    function = choice.get("function", choice) if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise WrongParameter("tool_choice", "expected none, auto, required, or the name of a function")
    if name not in schemas:
        raise WrongParameter("tool_choice", f"the tool {name!r} is not among the tools ({', '.join(schemas)})")
    return "named", name


def _call_schema(name: str) -> Schema:
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": {"$ref": f"#/$defs/{name}"}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _definition(name: str, schema: Schema) -> Schema:
    def rename(reference: str) -> str:
        return f"#/$defs/{name}{reference[1:]}" if reference == "#" or reference.startswith("#/") else reference

    return with_references(schema or ANYTHING, rename)
