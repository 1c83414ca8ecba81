"""What becomes of a model's text: content, calls of tools, reasoning."""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

Schemas = Mapping[str, Mapping[str, Any]]
"""A tool's name to the JSON schema of its arguments, {} where it has none."""
LETTERS = string.ascii_letters + string.digits


class ToolCall(NamedTuple):
    """A call, or more of its arguments: only the first of each has an id and a name."""

    number: int
    arguments: str
    id: str = ""
    name: str = ""


class Reasoning(NamedTuple):
    """What the model thinks before it answers."""

    text: str


Part = str | ToolCall | Reasoning
"""A text is content."""


class ToolCallReader(Protocol):
    """`feed` the text as it grows, then `finish`; what they yield is whole characters of it, none of them empty."""

    def feed(self, text: str) -> Iterator[Part]: ...

    def finish(self) -> Iterator[Part]: ...


class CallReader(Protocol):
    """Reads what follows a mark that calls begin with. What turns out not to be a call, mark and all, is content."""

    @property
    def rest(self) -> str | None:
        """What follows the end of the calls; None while they go on."""

    def feed(self, text: str) -> Iterator[Part]: ...

    def finish(self) -> Iterator[Part]:
        """The text has ended."""


class CallNumbers:
    """Numbers the calls of one text, and makes their ids. Only the first is told where the client wants one at most."""

    def __init__(self, schemas: Schemas, *, parallel: bool, new_id: Callable[[], str]) -> None:
        self.schemas, self.count = schemas, 0
        self._parallel, self._new_id = parallel, new_id

    def begin(self, name: str) -> ToolCall | None:
        """The beginning of the next call, without arguments; None for one that is not told."""
        number, self.count = self.count, self.count + 1
        return ToolCall(number, "", self._new_id(), name) if self._parallel or not number else None


def call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def short_call_id() -> str:
    """Nine letters and digits, which Mistral's chat templates demand of the calls in a history."""
    return "".join(secrets.choice(LETTERS) for _ in range(9))


def known_prefix(text: str, marks: tuple[str, ...]) -> int:
    """How many characters at the end of `text` may be the beginning of a mark."""
    longest = min(max(map(len, marks), default=1) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if any(mark.startswith(text[-n:]) for mark in marks)), 0)
