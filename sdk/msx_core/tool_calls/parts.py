"""The parts of a model's text: content, calls of tools, reasoning."""

import secrets
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

Schemas = Mapping[str, Mapping[str, Any]]
"""Tool name to the JSON schema of its arguments, or to {}."""
LETTERS = string.ascii_letters + string.digits


class ToolCall(NamedTuple):
    """A call, or a further piece of its arguments: only the first piece has an id and a name."""

    number: int
    arguments: str
    id: str = ""
    name: str = ""


class Reasoning(NamedTuple):
    """The text that the model writes before it answers."""

    text: str


Part = str | ToolCall | Reasoning
"""A str is content."""


class ToolCallReader(Protocol):
    """Call `feed` with the text as it grows, then `finish`; they yield non-empty parts of whole characters."""

    def feed(self, text: str) -> Iterator[Part]: ...

    def finish(self) -> Iterator[Part]: ...


class CallReader(Protocol):
    """Reads the text after a mark that opens calls. If it is not a call, the text and its mark are content."""

    @property
    def rest(self) -> str | None:
        """The text after the end of the calls; None before the end."""

    def feed(self, text: str) -> Iterator[Part]: ...

    def finish(self) -> Iterator[Part]:
        """The text has ended."""


class CallNumbers:
    """Numbers the calls of one text, and makes their ids. If the client wants one call at most, only the first is
    reported."""

    def __init__(self, schemas: Schemas, *, parallel: bool, new_id: Callable[[], str]) -> None:
        self.schemas, self.count = schemas, 0
        self._parallel, self._new_id = parallel, new_id

    def begin(self, name: str) -> ToolCall | None:
        """The beginning of the next call, without arguments; None for a call that is not reported."""
        number, self.count = self.count, self.count + 1
        return ToolCall(number, "", self._new_id(), name) if self._parallel or not number else None


def call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def short_call_id() -> str:
    """Nine letters and digits: Mistral's chat templates require this form for calls in a conversation."""
    return "".join(secrets.choice(LETTERS) for _ in range(9))


def known_prefix(text: str, marks: tuple[str, ...]) -> int:
    """How many characters at the end of `text` may be the beginning of a mark."""
    longest = min(max(map(len, marks), default=1) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if any(mark.startswith(text[-n:]) for mark in marks)), 0)
