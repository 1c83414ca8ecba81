"""Separates a model's reasoning from its answer: `<think>…</think>` at the beginning of the text."""

from collections.abc import Generator, Iterator

from msx_core.tool_calls.parts import Part, Reasoning, ToolCallReader, known_prefix

BEGIN, END = "<think>", "</think>"
FORMATS = {"qwen3": False, "deepseek_r1": True}
"""Formats by name. True: the text begins within the reasoning, because the chat template has written the opening
mark."""


class ReasoningFirst:
    """`inside`: the text begins within the reasoning. The reader `answer` reads what follows the reasoning."""

    def __init__(self, answer: ToolCallReader, *, inside: bool) -> None:
        self._answer, self._inside = answer, inside
        self._held = ""
        self._begun = self._over = False
        self._at_start = True
        """True at the beginning of the reasoning, then of the answer: line feeds there do not belong to it."""

    def feed(self, text: str) -> Iterator[Part]:
        if not self._begun and not self._over:
            text = self._start(text)
        if self._begun and not self._over:
            text = yield from self._think(text)
        if self._over:
            yield from self._say(text)

    def finish(self) -> Iterator[Part]:
        if self._held and self._begun and not self._over:
            yield Reasoning(self._held)
        elif self._held:
            yield from self._answer.feed(self._held)
        yield from self._answer.finish()

    def _start(self, text: str) -> str:
        """-> The reasoning, or the answer of a text that has none; nothing while that is not known."""
        text = self._held + text
        stripped = text.lstrip()
        self._held = ""
        if stripped.startswith(BEGIN):
            self._begun = True
            return stripped[len(BEGIN) :]
        if BEGIN.startswith(stripped):
            self._held = text
            return ""
        self._begun, self._over, self._at_start = self._inside, not self._inside, self._inside
        return text

    def _from_start(self, text: str) -> str:
        text = text.lstrip("\n") if self._at_start else text
        self._at_start = self._at_start and not text
        return text

    def _think(self, text: str) -> Generator[Part, None, str]:
        """-> The answer, when the reasoning has ended."""
        thought, end, rest = self._from_start(self._held + text).partition(END)
        sure = len(thought) if end else len(thought) - known_prefix(thought, (END,))
        self._held = thought[sure:]
        if thought[:sure]:
            yield Reasoning(thought[:sure])
        if end:
            self._over = self._at_start = True
        return rest

    def _say(self, text: str) -> Iterator[Part]:
        if text := self._from_start(text):
            yield from self._answer.feed(text)
