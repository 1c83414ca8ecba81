"""The items of a `/v1/responses` request as messages of the chat, which templates are written for.

What a model said in a row is one message: its reasoning, its text and its calls.
"""

from typing import Any

import msgspec

from msx_frontend.apis.openai.item_references import kind_of
from msx_frontend.apis.openai.response_tools import LISTS, FunctionName, ResponseTools
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.messages import content_of, read_arguments

Item = dict[str, Any]
CALLS = {"local_shell_call": "action", "shell_call": "action", "apply_patch_call": "operation"}
"""Calls of tools that a client runs and this server does not offer, and the members that are their arguments."""
OUTPUTS = ("function_call_output", "custom_tool_call_output", *(f"{kind}_output" for kind in CALLS))


class ItemReader:
    """Reads the items of one request. `ignored`: the places of items without effect: what OpenAI's own tools did, what
    only its models can read, and types that this server does not know."""

    def __init__(self, images: ImageFinder, tools: ResponseTools) -> None:
        self._images, self._tools = images, tools
        self.messages: list[dict[str, Any]] = []
        self._thoughts: list[str] = []
        self.ignored: list[str] = []

    def read(self, items: list[Item], place: str) -> None:
        """Add their messages. Raises WrongParameter, which names the item."""
        for number, item in enumerate(items):
            self._read(f"{place}[{number}]", item)

    def _read(self, place: str, item: Item) -> None:
        kind = kind_of(item)
        if not isinstance(kind, str) or not kind:
            raise WrongParameter(f"{place}.type", "expected the type of an item, as a text")
        if kind == "message":
            self._say(place, item)
        elif kind == "reasoning":
            self._thoughts += filter(None, [_thoughts(item)])
        elif kind == "function_call":
            name = self._tools.offered(FunctionName(str(item.get("namespace") or ""), str(item.get("name"))))
            self._call(item, name, read_arguments(f"{place}.arguments", item.get("arguments", "{}")))
        elif kind == "custom_tool_call":
            self._call(item, item.get("name"), {"input": item.get("input")})
        elif kind in CALLS:
            self._call(item, kind.removesuffix("_call"), item.get(CALLS[kind]))
        elif kind in OUTPUTS:
            self._output(place, item)
        elif kind not in LISTS:
            self.ignored.append(place)

    def _say(self, place: str, item: Item) -> None:
        content = content_of(f"{place}.content", item.get("content"), self._images)
        if item.get("role") == "assistant":
            self.messages.append({"role": "assistant", "content": content, **self._thought()})
        else:
            self._thoughts.clear()
            self.messages.append({"role": item.get("role"), "content": content})

    def _call(self, item: Item, name: Any, arguments: Any) -> None:
        if self._thoughts or not self.messages or self.messages[-1]["role"] != "assistant":
            self.messages.append({"role": "assistant", "content": None, **self._thought()})
        function = {"name": name, "arguments": arguments}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        self.messages[-1].setdefault("tool_calls", []).append(call)

    def _output(self, place: str, item: Item) -> None:
        output, call = item.get("output"), item.get("call_id") or item.get("id")
        if item["type"] == "shell_call_output":
            output = msgspec.json.encode(output).decode()
        content = content_of(f"{place}.output", output, self._images)
        self.messages.append({"role": "tool", "tool_call_id": call, "content": content})

    def _thought(self) -> dict[str, str]:
        thoughts = "".join(self._thoughts)
        self._thoughts.clear()
        return {"reasoning_content": thoughts} if thoughts else {}


def _thoughts(item: Item) -> str:
    """The text of the reasoning, or a summary of it; "" where OpenAI has encrypted it."""
    given = item.get("content") or item.get("summary")
    parts = given if isinstance(given, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
