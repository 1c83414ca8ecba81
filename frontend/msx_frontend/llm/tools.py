"""The tools of a request: what the template is told of them, and what the text is held to."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from msx_frontend.llm.errors import WrongParameter
from msx_sdk.generation import Constraint

Mode = Literal["none", "auto", "required", "named"]
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
DEFINITIONS = ("$defs", "definitions")


@dataclass(frozen=True)
class Tools:
    """`schemas`: a tool's name to the JSON schema of its arguments, {} where it gave none."""

    mode: Mode = "none"
    offered: list[dict[str, Any]] = field(default_factory=list)
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    named: str = ""
    parallel: bool = True

    @property
    def for_template(self) -> list[dict[str, Any]] | None:
        return None if self.mode == "none" else self.offered

    @property
    def constraint(self) -> Constraint | None:
        """Of a named call its arguments alone; of required ones a list of names and arguments."""
        if self.mode == "named":
            return _constraint(self.schemas[self.named] or {"type": "object"})
        if self.mode == "required":
            return _constraint(self._calls_schema())
        return None

    def _calls_schema(self) -> dict[str, Any]:
        definitions: dict[str, Any] = {}
        calls = [_call_schema(name, schema, definitions) for name, schema in self.schemas.items()]
        items = calls[0] if len(calls) == 1 else {"anyOf": calls}
        schema: dict[str, Any] = {"type": "array", "minItems": 1, "items": items}
        if not self.parallel:
            schema["maxItems"] = 1
        return {**schema, "$defs": definitions} if definitions else schema


def tools_of(offered: list[dict[str, Any]] | None, choice: Any, parallel: bool | None) -> Tools:
    """Raises WrongParameter, which names the tool."""
    if not offered:
        if choice not in (None, "none", "auto"):
            raise WrongParameter("tool_choice", "only together with tools")
        return Tools()
    schemas: dict[str, dict[str, Any]] = {}
    for number, tool in enumerate(offered):
        name, schema = _function(f"tools[{number}]", tool)
        schemas[name] = schema
    mode, named = _choice(choice, schemas)
    return Tools(mode, offered, schemas, named, parallel is not False)


def _function(place: str, tool: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, dict):
        raise WrongParameter(place, 'expected {"type": "function", "function": {"name": …, "parameters": …}}')
    name, schema = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise WrongParameter(f"{place}.function.name", "expected up to 128 letters, digits and _ . -")
    if schema is not None and not isinstance(schema, dict):
        raise WrongParameter(f"{place}.function.parameters", "expected a JSON schema, an object")
    return name, schema or {}


def _choice(choice: Any, schemas: dict[str, dict[str, Any]]) -> tuple[Mode, str]:
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
        raise WrongParameter("tool_choice", f"there is no tool {name!r} among the tools ({', '.join(schemas)})")
    return "named", name


def _constraint(schema: dict[str, Any]) -> Constraint:
    return Constraint(kind="json_schema", value=msgspec.json.encode(schema).decode())


def _call_schema(name: str, schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Definitions move to the root, under names of their own: references are from there."""
    defined = [(place, key, value) for place in DEFINITIONS for key, value in _members(schema.get(place))]
    moved = {f"#/{place}/{key}": f"{name}.{key}" for place, key, _ in defined}

    def rename(reference: str) -> str:
        for old, new in moved.items():
            if reference == old or reference.startswith(f"{old}/"):
                return f"#/$defs/{new}{reference[len(old) :]}"
        return reference

    definitions.update({f"{name}.{key}": _renamed(value, rename) for _, key, value in defined})
    arguments = {key: _renamed(value, rename) for key, value in schema.items() if key not in DEFINITIONS}
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": arguments or {"type": "object"}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _members(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [_renamed(item, rename) for item in value]
    if isinstance(value, dict):
        return {
            key: rename(item) if key == "$ref" and isinstance(item, str) else _renamed(item, rename)
            for key, item in value.items()
        }
    return value
