"""What a route answers with: a whole reply, or events as they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from msx_frontend.generation.generation import Generation, Piece
from msx_frontend.models.model_version import ModelVersion

Headers = list[tuple[str, str]]

EVENT_STREAM = "text/event-stream; charset=utf-8"
DONE = b"data: [DONE]\n\n"
"""OpenAI's last event."""


@dataclass(frozen=True)
class Whole:
    """`value` is sent as JSON; None is an empty body."""

    value: Any
    headers: Headers = field(default_factory=list)


class WritesEvents(Protocol):
    """How an API writes a generation; either may be nothing."""

    def said(self, pieces: list[Piece]) -> bytes: ...

    def ended(self) -> bytes: ...


@dataclass(frozen=True)
class Events:
    """The first of them is awaited before the status leaves, so that a refusal has a status of its own."""

    generation: Generation
    events: WritesEvents
    headers: Headers = field(default_factory=list)


Reply = Whole | Events


def fingerprint(version: ModelVersion) -> str:
    """OpenAI's `system_fingerprint`: with the same one, the same seed gives the same text."""
    return f"{version.source.name}-{version.source.version}"


_encode = msgspec.json.Encoder().encode
_PLACE = "\0"


def event(value: Any, name: str = "") -> bytes:
    """One server-sent event."""
    data = b"data: %b\n\n" % _encode(value)
    return b"event: %b\n%b" % (name.encode(), data) if name else data


class EventsOfText:
    """Events that differ in one text only: what stands around it is written once."""

    __slots__ = ("_after", "_before")

    def __init__(self, value_of: Callable[[str], Any]) -> None:
        """`value_of` a text is an event's value; no text of the client may stand behind it."""
        self._before, _, self._after = event(value_of(_PLACE)).rpartition(_encode(_PLACE))

    def event(self, text: str) -> bytes:
        return b"%b%b%b" % (self._before, _encode(text), self._after)
