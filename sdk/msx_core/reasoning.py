"""Separates a model's reasoning from its answer: it stands between marks at the beginning of the text."""

from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple

from msx_core.tool_calls import kimi_k2
from msx_core.tool_calls.parts import Part, Reasoning, ToolCallReader, known_prefix
from msx_core.unwrapped_answer import UnwrappedAnswer


class ReasoningFormat(NamedTuple):
    """The marks of the reasoning, of which one opens and one ends it."""

    opens: tuple[str, ...] = ("<think>",)
    ends: tuple[str, ...] = ("</think>",)
    cut_by: tuple[str, ...] = ()
    """Marks that end it, too, and belong to the answer."""
    inside: bool = False
    """The text begins within the reasoning, because the chat template has written the opening mark."""
    switches: tuple[str, ...] = ()
    """Variables of the chat template: the text begins within the reasoning where one of them is true."""
    wraps: tuple[str, ...] = ()
    """Marks around the answer, which are not content."""
    special: bool = False
    """The marks are special tokens."""

    def reader(self, answer: ToolCallReader, values: Mapping[str, Any] | None = None) -> "ReasoningFirst":
        """`answer` reads what follows the reasoning; `values`: the chat template's variables in the request."""
        inside = self.inside or any((values or {}).get(name) for name in self.switches)
        return ReasoningFirst(self, UnwrappedAnswer(answer, self.wraps) if self.wraps else answer, inside=inside)


FORMATS = {
    "qwen3": ReasoningFormat(),
    "deepseek_r1": ReasoningFormat(inside=True),
    "deepseek_v3": ReasoningFormat(switches=("thinking", "enable_thinking")),
    "ernie45": ReasoningFormat(inside=True, wraps=("<response>", "</response>")),
    "gemma4": ReasoningFormat(opens=("<|channel>thought",), ends=("<channel|>",), special=True),
    "granite": ReasoningFormat(
        opens=("Here is my thought process:", "Here's my thought process:"),
        ends=("Here is my response:", "Here's my response:"),
    ),
    "kimi_k2": ReasoningFormat(cut_by=(kimi_k2.OPEN, kimi_k2.BEGIN)),
    "mistral": ReasoningFormat(opens=("[THINK]",), ends=("[/THINK]",), special=True),
    "seed_oss": ReasoningFormat(opens=("<seed:think>",), ends=("</seed:think>",), special=True),
}
"""Formats by name."""


class ReasoningFirst:
    """`inside`: the text begins within the reasoning. The reader `answer` reads what follows the reasoning."""

    def __init__(self, form: ReasoningFormat, answer: ToolCallReader, *, inside: bool) -> None:
        self._form, self._answer, self._inside = form, answer, inside
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
        if mark := next((mark for mark in self._form.opens if stripped.startswith(mark)), ""):
            self._begun = True
            return stripped[len(mark) :]
        if any(mark.startswith(stripped) for mark in self._form.opens):
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
        text, marks = self._from_start(self._held + text), (*self._form.ends, *self._form.cut_by)
        place, end = min(((at, mark) for mark in marks if (at := text.find(mark)) >= 0), default=(-1, ""))
        sure = place if end else len(text) - known_prefix(text, marks)
        self._held = "" if end else text[sure:]
        if text[:sure]:
            yield Reasoning(text[:sure])
        if not end:
            return ""
        self._over = self._at_start = True
        return text[sure if end in self._form.cut_by else sure + len(end) :]

    def _say(self, text: str) -> Iterator[Part]:
        if text := self._from_start(text):
            yield from self._answer.feed(text)
