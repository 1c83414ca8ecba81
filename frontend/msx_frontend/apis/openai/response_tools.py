"""The tools of a `/v1/responses` request as those of the chat, and their names in both."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msx_core.text_limits import TextLimits, too_much
from msx_frontend.generation.errors import WrongParameter

Tool = dict[str, Any]
MEMBERS = ("name", "description", "parameters", "strict")
LISTS = ("additional_tools", "tool_search_output")
"""Types of items that offer tools."""


class FunctionName(NamedTuple):
    """A function as its client knows it; `namespace` is empty for one outside namespaces."""

    namespace: str
    name: str


class ResponseTools:
    """`tools` are functions in the form of the chat, `max_tools` at most, wherever they were offered. `ignored`: the
    places of tools that the server lacks; `places`: the client's names of places in `tools`."""

    def __init__(self, tools: list[Tool] | None, items: str | list[dict[str, Any]], limits: TextLimits) -> None:
        """Raises WrongParameter."""
        self._most = limits.max_tools
        self.tools: list[Tool] = []
        self.ignored: list[str] = []
        self.places: dict[str, str] = {}
        self._functions: dict[str, FunctionName] = {}
        self._offered: dict[FunctionName, str] = {}
        for place, tool in _listed(tools, items):
            self._add(place, tool)

    def function(self, offered: str) -> FunctionName:
        """The function that the model calls so."""
        return self._functions.get(offered, FunctionName("", offered))

    def offered(self, function: FunctionName) -> str:
        """The name by which the model knows a function."""
        return self._offered.get(function, function.name)

    def _add(self, place: str, tool: Tool) -> None:
        kind = tool.get("type")
        if kind == "function":
            self._offer(place, tool, "")
        elif kind == "namespace" and isinstance(tool.get("tools"), list):
            for where, one in _numbered(f"{place}.tools", tool["tools"]):
                self._add_within(where, one, str(tool.get("name")))
        elif isinstance(kind, str):
            self.ignored.append(place)
        else:
            raise WrongParameter(f"{place}.type", "needed, as a text")

    def _add_within(self, place: str, tool: Tool, namespace: str) -> None:
        if tool.get("type") == "function":
            self._offer(place, tool, namespace)
        else:
            self.ignored.append(place)

    def _offer(self, place: str, tool: Tool, namespace: str) -> None:
        """A name that another function has already comes with its namespace."""
        if len(self.tools) == self._most:
            raise WrongParameter(place, too_much("tools", self._most + 1, self._most, "max_tools"))
        name = tool.get("name")
        function = {member: tool[member] for member in MEMBERS if member in tool}
        if isinstance(name, str):
            if namespace and name in self._functions:
                function["name"] = f"{namespace}__{name}"
            known = self._functions.setdefault(function["name"], FunctionName(namespace, name))
            self._offered.setdefault(known, function["name"])
        self.places[rf"tools\[{len(self.tools)}\]\.function"] = place
        self.tools.append({"type": "function", "function": function})


class ResponseChoice(NamedTuple):
    """The choice in the form of the chat, and the tools among which it is made."""

    choice: str | dict[str, Any] | None
    tools: list[Tool]


def choice_of(choice: str | dict[str, Any] | None, given: ResponseTools) -> ResponseChoice:
    """Raises WrongParameter."""
    if not isinstance(choice, dict):
        return ResponseChoice(choice, given.tools)
    if choice.get("type") == "allowed_tools":
        return _allowed(choice, given)
    name = choice.get("name")
    if choice.get("type") != "function" or not isinstance(name, str):
        raise WrongParameter("tool_choice", "expected none, auto, required, allowed_tools, or the name of a function")
    offered = given.offered(FunctionName(str(choice.get("namespace") or ""), name))
    return ResponseChoice({"type": "function", "function": {"name": offered}}, given.tools)


def _allowed(choice: dict[str, Any], given: ResponseTools) -> ResponseChoice:
    allowed = choice.get("tools")
    if choice.get("mode") not in ("auto", "required") or not isinstance(allowed, list):
        raise WrongParameter("tool_choice", "expected allowed_tools with tools, and auto or required as its mode")
    names = [one.get("name") for one in allowed if isinstance(one, dict)]
    return ResponseChoice(choice["mode"], [one for one in given.tools if one["function"].get("name") in names])


def _listed(tools: list[Tool] | None, items: str | list[dict[str, Any]]) -> Iterator[tuple[str, Tool]]:
    """All tools that are offered, with their places."""
    yield from _numbered("tools", tools or ())
    for place, item in _numbered("input", () if isinstance(items, str) else items):
        if item.get("type") in LISTS and isinstance(item.get("tools"), list):
            yield from _numbered(f"{place}.tools", item["tools"])


def _numbered(place: str, values: Sequence[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise WrongParameter(f"{place}[{number}]", "expected an object")
        yield f"{place}[{number}]", value
