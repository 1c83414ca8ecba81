"""Content with calls in it: a mark opens the calls, or the text begins with them."""

from collections.abc import Callable, Generator, Iterator, Mapping

from msx_core.tool_calls.parts import CallNumbers, CallReader, Part, known_prefix

THOUGHT = "</think>"
"""The mark that ends a model's reasoning; the text begins anew after it."""

Open = Callable[[CallNumbers, str], CallReader]
"""Makes the reader of calls from the mark that opened them, with the white space before it."""


class TextWithCalls:
    """`marks` maps each opening mark to its reader. A text that begins with one of the characters `bare` consists of
    calls, which `whole` reads, unless it turns out otherwise. White space around calls is not content."""

    def __init__(
        self, numbers: CallNumbers, marks: Mapping[str, Open], bare: str = "", whole: Open | None = None
    ) -> None:
        self._numbers, self._openers = numbers, dict(marks)
        self._marks = (*marks, THOUGHT)
        self._bare, self._whole = bare, whole
        self._inside: CallReader | None = None
        self._held = ""
        self._begins = whole is not None
        """There was only white space so far."""

    def feed(self, text: str) -> Iterator[Part]:
        text = self._held + text
        self._held = ""
        while text:
            if self._inside is None:
                text = yield from self._outside(text)
            else:
                yield from self._inside.feed(text)
                text = self._inside.rest or ""
                self._inside = self._inside if self._inside.rest is None else None

    def finish(self) -> Iterator[Part]:
        if self._inside is not None:
            yield from self._inside.finish()
        elif self._held.strip() or (self._held and not self._numbers.count):
            yield self._held

    def _outside(self, text: str) -> Generator[Part, None, str]:
        """Reports content up to the next mark. -> The text after it."""
        stripped = text.lstrip()
        if self._begins and stripped[:1] in self._bare and stripped and self._whole is not None:
            self._begins = False
            self._inside = self._whole(self._numbers, text[: len(text) - len(stripped)])
            return stripped
        found = [(place, mark) for mark in self._marks if (place := text.find(mark)) >= 0]
        if not found:
            yield from self._say(text)
            return ""
        place, mark = min(found)
        after = place + len(mark)
        if mark == THOUGHT:
            yield text[:after]
            self._begins = self._whole is not None and not self._numbers.count
            return text[after:]
        before = text[:place].rstrip()
        if before:
            yield before
        self._begins = False
        self._inside = self._openers[mark](self._numbers, text[len(before) : after])
        return text[after:]

    def _say(self, text: str) -> Iterator[Part]:
        """Reports content, but holds back what may belong to a call: white space before it, and the beginning of a
        mark."""
        sure = len(text[: len(text) - known_prefix(text, self._marks)].rstrip())
        self._held = text[sure:]
        if sure:
            self._begins = False
            yield text[:sure]
