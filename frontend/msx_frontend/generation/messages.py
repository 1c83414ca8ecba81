"""OpenAI's chat messages, made uniform for a chat template: a content is one text, or a list where it has images."""

from typing import Any

import msgspec

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.finder import IMAGE_PARTS, ImageFinder

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""OpenAI's newer word for the system is developer, which templates do not know."""
TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


class MixedContent(list[dict[str, Any]]):
    """Parts that `content_of` has made."""


def template_messages(messages: list[dict[str, Any]], images: ImageFinder) -> list[dict[str, Any]]:
    """Raises WrongParameter, which names the message."""
    if not messages:
        raise WrongParameter("messages", "at least one message is needed")
    return [_message(f"messages[{number}]", message, images) for number, message in enumerate(messages)]


def content_of(place: str, content: Any, images: ImageFinder) -> str | MixedContent:
    """A text as it is, the text parts of a list, each on a line of its own; "" without content. A list with images is
    one of all its parts. Raises WrongParameter."""
    if isinstance(content, MixedContent):
        return content
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise WrongParameter(place, f"expected a text or a list of parts, not {type(content).__name__}")
    return joined([part_of(f"{place}[{number}]", part, images) for number, part in enumerate(content)])


def joined(parts: list[str | dict[str, Any]]) -> str | MixedContent:
    """The content of a message of these texts and images."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    return MixedContent({"type": "text", "text": part} if isinstance(part, str) else part for part in parts)


def part_of(place: str, part: Any, images: ImageFinder) -> str | dict[str, Any]:
    """A text, or an image as a template gets it. Raises WrongParameter."""
    if isinstance(part, str):
        return part
    kind = str(part.get("type")) if isinstance(part, dict) else ""
    if images.reads and kind in IMAGE_PARTS:
        return images.part(place, part)
    text = part.get(TEXT_PARTS[kind]) if kind in TEXT_PARTS else None
    if not isinstance(text, str):
        known = "text or image_url" if images.reads else "text"
        raise WrongParameter(place, f"expected a part of the type {known}; this model reads no {kind or 'such part'}")
    return text


def _message(place: str, message: dict[str, Any], images: ImageFinder) -> dict[str, Any]:
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise WrongParameter(f"{place}.role", f"expected one of {', '.join(ROLES)}, not {role!r}")
    calls = message.get("tool_calls")
    if message.get("content") is None and not calls and role != "assistant":
        raise WrongParameter(f"{place}.content", "needed")
    plain = {**message, "role": ROLES[role], "content": content_of(f"{place}.content", message.get("content"), images)}
    plain.pop("tool_calls", None)
    if calls:
        plain["tool_calls"] = _calls(f"{place}.tool_calls", calls)
    return plain


def _calls(place: str, calls: Any) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise WrongParameter(place, f"expected a list, not {type(calls).__name__}")
    return [_call(f"{place}[{number}]", call) for number, call in enumerate(calls)]


def _call(place: str, call: Any) -> dict[str, Any]:
    """OpenAI sends arguments as a text of JSON. Templates write the JSON themselves, so they get the object."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise WrongParameter(f"{place}.function.name", "needed")
    arguments = read_arguments(f"{place}.function.arguments", function.get("arguments", {}))
    return {**call, "type": "function", "function": {**function, "arguments": arguments}}


def read_arguments(place: str, given: Any) -> Any:
    """Decode a text of JSON; any other value is given back. Raises WrongParameter, which names the place."""
    if not isinstance(given, str):
        return given
    try:
        return msgspec.json.decode(given or "{}")
    except msgspec.DecodeError as error:
        raise WrongParameter(place, f"expected a text of JSON: {error}") from None
    except RecursionError:
        raise WrongParameter(place, "its JSON is nested too deeply") from None
