"""JSON replies as TorchServe writes them: two spaces, and a line feed at the end."""

from __future__ import annotations

from typing import Any

from msx_net.http.family import JsonSchema, Reply
from msx_net.http.wire import json_bytes


def json_reply(value: Any, status: int = 200) -> Reply:
    return Reply(json_bytes(value), status)


STATUS_SCHEMA: JsonSchema = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
}
"""Schema of `status_reply`."""


def status_reply(text: str, status: int = 200) -> Reply:
    """One sentence on what was done, or how things are."""
    return json_reply({"status": text}, status)
