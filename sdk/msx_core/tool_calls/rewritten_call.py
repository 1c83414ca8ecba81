"""A call whose arguments the model does not write as JSON: they are told as JSON as they grow."""

from collections.abc import Callable, Iterator

from msx_core.tool_calls.parts import CallNumbers, Part, ToolCall


class RewrittenCall:
    """Reads one call in states: each takes what it knows off the beginning of the text, and moves on. `_raw` is
    what was read before the text: content, if this is not a call."""

    def __init__(self, numbers: CallNumbers, raw: str, text: str, first: Callable[[], Iterator[Part]]) -> None:
        self.rest: str | None = None
        self._numbers, self._raw, self._text, self._state = numbers, raw, text, first
        self._told = self._moved = False
        self._begun: ToolCall | None = None

    def feed(self, text: str) -> Iterator[Part]:
        self._text += text
        self._moved = True
        while self._moved and self.rest is None:
            self._moved = False
            yield from self._state()

    def finish(self) -> Iterator[Part]:
        if not self._told:
            yield self._raw + self._text

    def _tell(self, text: str) -> Iterator[Part]:
        """A further piece of the arguments."""
        if self._begun is not None and text:
            yield self._begun._replace(arguments=text)
            self._begun = ToolCall(self._begun.number, "")

    def _move(self, state: Callable[[], Iterator[Part]]) -> None:
        self._state, self._moved = state, True
