"""Cohere's messages as those of OpenAI's chat, which templates are written for."""

from collections.abc import Iterator
from typing import Any

import msgspec

from msx_frontend.generation.errors import WrongParameter


def messages_of(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Raises WrongParameter, which names the message."""
    return [_message(f"messages[{number}]", one) for number, one in enumerate(messages)]


def documents_of(documents: list[str | dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """Documents as templates get them: objects of texts."""
    return None if documents is None else [_document(one) for one in documents]


def _message(place: str, message: dict[str, Any]) -> dict[str, Any]:
    if message.get("role") == "assistant":
        return _answer(place, message)
    content = message.get("content")
    if isinstance(content, list):
        content = [part for where, one in _numbered(place, content) for part in _part(where, one)]
    made = {"role": message.get("role"), "content": content}
    return {**made, "tool_call_id": message.get("tool_call_id")} if message.get("role") == "tool" else made


def _answer(place: str, message: dict[str, Any]) -> dict[str, Any]:
    """An answer of the model. Its plan before calls is its text."""
    texts: list[dict[str, Any]] = []
    thoughts = ""
    for where, block in _blocks(place, message.get("content")):
        if block.get("type") == "thinking":
            thoughts += str(block.get("thinking", ""))
        else:
            texts += _part(where, block)
    if plan := message.get("tool_plan"):
        texts.insert(0, {"type": "text", "text": str(plan)})
    made: dict[str, Any] = {"role": "assistant", "content": texts}
    if thoughts:
        made["reasoning_content"] = thoughts
    if calls := message.get("tool_calls"):
        made["tool_calls"] = calls
    return made


def _blocks(place: str, content: Any) -> list[tuple[str, dict[str, Any]]]:
    """The blocks with their places; a text is one."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [(f"{place}.content", {"type": "text", "text": content})]
    if not isinstance(content, list):
        raise WrongParameter(f"{place}.content", "expected a text or a list of blocks")
    return list(_numbered(place, content))


def _numbered(place: str, content: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, one in enumerate(content):
        where = f"{place}.content[{number}]"
        if not isinstance(one, dict):
            raise WrongParameter(where, 'expected a block: {"type": …}')
        yield where, one


def _part(place: str, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A block in OpenAI's form; a document is a text of JSON."""
    if block.get("type") != "document":
        yield block
        return
    document = block.get("document")
    if not isinstance(document, (dict, str)):
        raise WrongParameter(f"{place}.document", "expected an object or a text")
    yield {"type": "text", "text": msgspec.json.encode(_document(document)).decode()}


def _document(document: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(document, str):
        return {"text": document}
    data = document.get("data", document)
    return dict(data) if isinstance(data, dict) else {"text": data}
