"""Converts OpenAI's chat messages to what chat templates expect."""

import json
from typing import Any

from msx_core.errors import InvalidInput

Message = dict[str, Any]


def prepared(messages: list[Message]) -> list[Message]:
    """Copies with texts as contents and objects as arguments of tool calls. Raises InvalidInput, which names the
    place."""
    return [_prepared(message, f"messages[{number}]") for number, message in enumerate(messages)]


def _prepared(message: Message, place: str) -> Message:
    result = dict(message)
    if message.get("role") == "developer":
        result["role"] = "system"  # OpenAI's newer name
    if "content" in message:
        result["content"] = _text(message["content"], f"{place}.content")
    if message.get("tool_calls"):
        result["tool_calls"] = [
            _call(call, f"{place}.tool_calls[{number}]") for number, call in enumerate(message["tool_calls"])
        ]
    return result


def _text(content: Any, place: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidInput(f"{place}: expected a text or a list of parts")
    return "\n".join(_part(part, f"{place}[{number}]") for number, part in enumerate(content))


def _part(part: Any, place: str) -> str:
    if isinstance(part, dict) and part.get("type", "text") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type") if isinstance(part, dict) else part
    raise InvalidInput(f'{place}: this model reads text alone, {{"type": "text", "text": …}}, not {kind!r}')


def _call(call: Any, place: str) -> Any:
    """Templates encode the arguments as JSON, but OpenAI's clients send JSON: it is decoded here."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise InvalidInput(f"{place}.function: expected an object")
    return {**call, "function": {**function, "arguments": _arguments(function.get("arguments"), place)}}


def _arguments(arguments: Any, place: str) -> Any:
    try:
        value = json.loads(arguments or "{}") if isinstance(arguments, str | None) else arguments
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(f"{place}.function.arguments: expected a JSON object")
    return value
