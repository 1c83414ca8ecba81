"""Anthropic's messages as those of OpenAI's chat, which templates are written for.

A message of the user with results of tools is several there: one of the role `tool` for each, and the rest.
"""

from collections.abc import Iterator
from typing import Any

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.messages import joined, part_of

Block = dict[str, Any]
ROLES = ("user", "assistant", "system")
BILLING = "x-anthropic-billing-header:"
"""A line that Claude Code writes before its instructions. It differs from request to request, and would keep prompts
from sharing what is computed."""
SERVER_TOOLS = ("server_tool_use", "container_upload", "mcp_tool_use", "mcp_tool_result", "tool_reference")
"""Blocks about tools that ran in Anthropic's cloud, beside those whose names end with `_tool_result`."""


class BlockReader:
    """Reads the messages of one request. `ignored`: the places of blocks without effect."""

    def __init__(self, images: ImageFinder) -> None:
        self._images = images
        self.ignored: list[str] = []

    def read(self, system: str | list[Block] | None, messages: list[Block]) -> list[dict[str, Any]]:
        """Raises WrongParameter, which names the block."""
        if not messages:
            raise WrongParameter("messages", "at least one message is needed")
        found = self._system(system)
        for number, message in enumerate(messages):
            found += self._message(f"messages[{number}]", message)
        return found

    def _system(self, system: str | list[Block] | None) -> list[dict[str, Any]]:
        blocks = self._blocks("system", system or "")
        texts = [text for place, block in blocks if not (text := self._text(place, block)).startswith(BILLING)]
        content = "\n".join(text for text in texts if text)
        return [{"role": "system", "content": content}] if content else []

    def _message(self, place: str, message: Block) -> Iterator[dict[str, Any]]:
        role = message.get("role")
        if role not in ROLES:
            raise WrongParameter(f"{place}.role", f"expected one of {', '.join(ROLES)}, not {role!r}")
        blocks = self._blocks(f"{place}.content", message.get("content"))
        return self._answer(blocks) if role == "assistant" else self._said(str(role), blocks)

    def _said(self, role: str, blocks: list[tuple[str, Block]]) -> Iterator[dict[str, Any]]:
        parts: list[str | Block] = []
        results = 0
        for place, block in blocks:
            if block["type"] == "tool_result":
                if parts:
                    yield {"role": role, "content": joined(parts)}
                    parts = []
                yield self._result(place, block)
                results += 1
            else:
                parts += self._parts(place, block)
        if parts or not results:  # without any, as of blocks that are left out, the message is empty
            yield {"role": role, "content": joined(parts)}

    def _answer(self, blocks: list[tuple[str, Block]]) -> Iterator[dict[str, Any]]:
        parts: list[str | Block] = []
        thoughts, calls = "", []
        for place, block in blocks:
            if block["type"] == "tool_use":
                calls.append(_call(place, block))
            elif block["type"] == "thinking":
                thoughts += str(block.get("thinking", ""))
            elif block["type"] != "redacted_thinking":
                parts += self._parts(place, block)
        message: dict[str, Any] = {"role": "assistant", "content": joined(parts)}
        if thoughts:
            message["reasoning_content"] = thoughts
        if calls:
            message["tool_calls"] = calls
        yield message

    def _result(self, place: str, block: Block) -> dict[str, Any]:
        inner = self._blocks(f"{place}.content", block.get("content") or "")
        content = joined([part for where, one in inner for part in self._parts(where, one)])
        if block.get("is_error") and isinstance(content, str):
            content = f"Error: {content}"
        return {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}

    def _parts(self, place: str, block: Block) -> Iterator[str | Block]:
        kind = block["type"]
        if kind == "image":
            yield part_of(place, {"type": "image_url", "image_url": _url(place, block.get("source"))}, self._images)
        elif kind == "document":
            yield _document(place, block)
        elif kind == "search_result":
            yield from (self._text(where, one) for where, one in self._blocks(f"{place}.content", block.get("content")))
        elif kind in SERVER_TOOLS or kind.endswith("_tool_result"):
            self.ignored.append(place)
        else:
            yield self._text(place, block)

    def _text(self, place: str, block: Block) -> str:
        if block["type"] != "text":
            raise WrongParameter(place, f"expected a block of the type text, not {block['type']!r}")
        if not isinstance(text := block.get("text"), str):
            raise WrongParameter(f"{place}.text", "needed, as a text")
        return text

    def _blocks(self, place: str, content: Any) -> list[tuple[str, Block]]:
        """The blocks with their places; a text is one."""
        if isinstance(content, str):
            return [(place, {"type": "text", "text": content})] if content else []
        if not isinstance(content, list):
            raise WrongParameter(place, "expected a text or a list of blocks")
        return [(where, self._block(where, one)) for where, one in _numbered(place, content)]

    def _block(self, place: str, block: Any) -> Block:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise WrongParameter(place, 'expected a block: {"type": …}')
        if "cache_control" in block and block["cache_control"] is not None:
            self.ignored.append(f"{place}.cache_control")
        return block


def _numbered(place: str, content: list[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{place}[{number}]", one) for number, one in enumerate(content))


def _call(place: str, block: Block) -> dict[str, Any]:
    name, given = block.get("name"), block.get("input")
    if not isinstance(name, str):
        raise WrongParameter(f"{place}.name", "needed")
    if not isinstance(given, dict):
        raise WrongParameter(f"{place}.input", "expected an object")
    return {"id": block.get("id"), "type": "function", "function": {"name": name, "arguments": given}}


def _url(place: str, source: Any) -> str:
    kind = source.get("type") if isinstance(source, dict) else None
    if kind == "base64":
        return f"data:{source.get('media_type')};base64,{source.get('data')}"
    if kind == "url" and isinstance(source.get("url"), str):
        return str(source["url"])
    raise WrongParameter(
        f"{place}.source", f"expected one of the types base64 and url, not {kind!r}: no files are kept"
    )


def _document(place: str, block: Block) -> str:
    source = block.get("source")
    if isinstance(source, dict) and source.get("type") == "text" and isinstance(source.get("data"), str):
        return str(source["data"])
    raise WrongParameter(f"{place}.source", "expected one of the type text: this server reads no other documents")
