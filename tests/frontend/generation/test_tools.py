from __future__ import annotations

import json
from typing import Any

import pytest

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.tools import Tools, tools_of


def tool(name: str = "f", **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


def schema_of(tools: Tools) -> Any:
    assert tools.constraint is not None
    assert tools.constraint.kind == "json_schema"
    return json.loads(tools.constraint.value)


@pytest.mark.parametrize(
    ("choice", "mode"),
    [
        (None, "auto"),
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "f"}}, "named"),
        ({"type": "function", "name": "f"}, "named"),
        ({"function": {"name": "f"}}, "named"),
    ],
)
def test_choices(choice: Any, mode: str) -> None:
    tools = tools_of([tool()], choice, None)
    assert tools.mode == mode
    assert tools.for_template == (None if mode == "none" else [tool()])
    assert (tools.constraint is None) == (mode in ("none", "auto"))


def test_no_tools() -> None:
    assert tools_of(None, None, None) == Tools()
    assert tools_of([], "auto", None).for_template is None


def test_a_named_call_is_its_arguments() -> None:
    arguments = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert schema_of(tools_of([tool(parameters=arguments)], {"name": "f"}, None)) == arguments
    assert schema_of(tools_of([tool()], {"name": "f"}, None)) == {"type": "object"}


def test_required_calls_are_a_list() -> None:
    tools = [tool("f", parameters={"type": "object"}), tool("g")]
    schema = schema_of(tools_of(tools, "required", None))
    assert (schema["type"], schema["minItems"]) == ("array", 1)
    assert [one["properties"]["name"]["const"] for one in schema["items"]["anyOf"]] == ["f", "g"]
    assert schema["items"]["anyOf"][0]["required"] == ["name", "arguments"]
    assert "maxItems" not in schema
    assert schema_of(tools_of(tools, "required", False))["maxItems"] == 1
    assert schema_of(tools_of(tools[:1], "required", True))["items"]["properties"]["name"] == {"const": "f"}


def test_each_schema_is_a_definition_with_references_from_there() -> None:
    parameters = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/P"}, "next": {"$ref": "#"}, "$ref": {"type": "string"}},
        "$defs": {"P": {"items": {"$ref": "#/$defs/P/x"}}},
    }
    schema = schema_of(tools_of([tool("f", parameters=parameters), tool("g")], "required", None))
    f, g = (one["properties"]["arguments"] for one in schema["items"]["anyOf"])
    assert (f, g) == ({"$ref": "#/$defs/f"}, {"$ref": "#/$defs/g"})
    assert schema["$defs"]["f"]["properties"] == {
        "p": {"$ref": "#/$defs/f/$defs/P"},
        "next": {"$ref": "#/$defs/f"},
        "$ref": {"type": "string"},
    }
    assert schema["$defs"]["f"]["$defs"]["P"] == {"items": {"$ref": "#/$defs/f/$defs/P/x"}}
    assert schema["$defs"]["g"] == {"type": "object"}


@pytest.mark.parametrize(
    ("tools", "choice", "text"),
    [
        (None, "required", "tool_choice: only together with tools"),
        ([{"type": "web_search"}], None, "tools[0]: expected"),
        ([{"type": "function"}], None, "tools[0]: expected"),
        ([tool(), tool("a b")], None, "tools[1].function.name: expected up to 128"),
        ([tool(parameters=3)], None, "tools[0].function.parameters: expected a JSON schema"),
        ([tool()], "always", "tool_choice: expected none, auto, required"),
        ([tool()], {"name": ["g"]}, "tool_choice: expected none, auto, required"),
        ([tool()], {"name": "g"}, "tool_choice: the tool 'g' is not among the tools (f)"),
    ],
)
def test_what_is_wrong_is_named(tools: Any, choice: Any, text: str) -> None:
    with pytest.raises(WrongParameter) as wrong:
        tools_of(tools, choice, None)
    assert wrong.value.message.startswith(text)
