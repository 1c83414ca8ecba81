"""An answer between marks that are not content."""

from collections.abc import Iterator

from msx_core.tool_calls.parts import Part, ToolCallReader, known_prefix


class UnwrappedAnswer:
    """Drops the marks, with the line feeds beside them, before `answer` reads the text."""

    def __init__(self, answer: ToolCallReader, marks: tuple[str, ...]) -> None:
        self._answer, self._marks = answer, marks
        self._held = ""
        self._behind = False
        """A mark stands before, and line feeds alone behind it."""

    def feed(self, text: str) -> Iterator[Part]:
        text, self._held = self._held + text, ""
        while found := [(at, mark) for mark in self._marks if (at := text.find(mark)) >= 0]:
            at, mark = min(found)
            yield from self._say(text[:at].rstrip("\n"))
            text, self._behind = text[at + len(mark) :], True
        sure = len(text[: len(text) - known_prefix(text, self._marks)].rstrip("\n"))
        self._held = text[sure:]
        yield from self._say(text[:sure])

    def finish(self) -> Iterator[Part]:
        yield from self._say(self._held)
        yield from self._answer.finish()

    def _say(self, text: str) -> Iterator[Part]:
        text = text.lstrip("\n") if self._behind else text
        if text:
            self._behind = False
            yield from self._answer.feed(text)
