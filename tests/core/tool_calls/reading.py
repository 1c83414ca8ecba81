"""Reads a text, cut or whole, as a client puts it together again."""

from __future__ import annotations

from msx_core.tool_calls.parts import Reasoning, ToolCall, ToolCallReader

Calls = list[tuple[str, str]]


def read(reader: ToolCallReader, *pieces: str) -> tuple[str, Calls]:
    """The content, and the name and arguments of each call; reasoning stands in the content as «reasoning»."""
    content = ""
    calls: dict[int, tuple[str, str]] = {}
    for part in [*(part for piece in pieces for part in reader.feed(piece)), *reader.finish()]:
        if isinstance(part, str):
            assert part
            content += part
        elif isinstance(part, Reasoning):
            assert part.text
            content += f"«{part.text}»"
        else:
            add(calls, part)
    return content.replace("»«", ""), list(calls.values())


def add(calls: dict[int, tuple[str, str]], part: ToolCall) -> None:
    if part.id:
        assert part.number == len(calls)
        calls[part.number] = (part.name, part.arguments)
    else:
        name, arguments = calls[part.number]
        calls[part.number] = (name, arguments + part.arguments)
