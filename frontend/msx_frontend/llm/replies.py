"""What a route answers with: a whole reply, or events as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

Headers = list[tuple[str, str]]

EVENT_STREAM = "text/event-stream; charset=utf-8"
DONE = b"data: [DONE]\n\n"
"""OpenAI's last event."""


@dataclass(frozen=True)
class Whole:
    """`value` is sent as JSON; None is an empty body."""

    value: Any
    headers: Headers = field(default_factory=list)


@dataclass(frozen=True)
class Events:
    """The first of them is awaited before the status leaves, so that a refusal has a status of its own."""

    events: AsyncIterator[bytes]
    headers: Headers = field(default_factory=list)


Reply = Whole | Events


def event(value: Any, name: str = "") -> bytes:
    """One server-sent event."""
    data = b"data: %b\n\n" % msgspec.json.encode(value)
    return b"event: %b\n%b" % (name.encode(), data) if name else data
