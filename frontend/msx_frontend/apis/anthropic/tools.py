"""Anthropic's tools and its choice among them, as OpenAI's."""

from typing import Any, NamedTuple

from msx_frontend.generation.errors import WrongParameter

CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class AskedTools(NamedTuple):
    """Tools in OpenAI's form. `ignored`: the places of tools that run in Anthropic's cloud, or that its models alone
    know; `names`: the client's names of places in `tools`."""

    tools: list[dict[str, Any]]
    ignored: list[str]
    names: dict[str, str]


def asked_tools(tools: list[dict[str, Any]] | None) -> AskedTools:
    """Raises WrongParameter."""
    found = AskedTools([], [], {})
    for number, tool in enumerate(tools or ()):
        place, ours = f"tools[{number}]", rf"tools\[{len(found.tools)}\]"
        if tool.get("type", "custom") not in ("custom", None):
            found.ignored.append(place)
            continue
        found.names[rf"{ours}\.function\.parameters"] = f"{place}.input_schema"
        found.names[rf"{ours}\.function"] = place
        found.tools.append(_tool(place, tool))
        if tool.get("cache_control") is not None:
            found.ignored.append(f"{place}.cache_control")
    return found


def _tool(place: str, tool: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(tool.get("input_schema"), dict):
        raise WrongParameter(f"{place}.input_schema", "expected a JSON schema, an object")
    function = {name: tool[name] for name in ("name", "description", "strict") if tool.get(name) is not None}
    return {"type": "function", "function": {**function, "parameters": tool["input_schema"]}}


def asked_choice(choice: dict[str, Any] | None) -> str | dict[str, Any] | None:
    """OpenAI's `tool_choice`. Raises WrongParameter."""
    if choice is None:
        return None
    kind = choice.get("type")
    if kind == "tool" and isinstance(choice.get("name"), str):
        return {"type": "function", "function": {"name": choice["name"]}}
    if not isinstance(kind, str) or kind not in CHOICES:
        raise WrongParameter("tool_choice", f"expected auto, any, none, or tool with its name; not {kind!r}")
    return CHOICES[kind]


def allows_parallel(choice: dict[str, Any] | None) -> bool:
    return choice is None or choice.get("disable_parallel_tool_use") is not True
