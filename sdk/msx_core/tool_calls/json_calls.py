"""Calls as JSON objects, one after another or in a list."""

from collections.abc import Generator, Iterator

from msx_core.tool_calls.json_call import JsonCall
from msx_core.tool_calls.parts import CallNumbers, Part

BETWEEN = " \t\n\r[],;"
"""Characters that may stand between the objects."""


class JsonCalls:
    """`opened` is the text before the calls, which is content if a call does not follow; `closing` is the mark that
    ends them, if any.

    Without a closing mark the calls end with the first character that cannot belong to them.
    """

    def __init__(self, numbers: CallNumbers, opened: str = "", closing: str = "", *, eager: bool = False) -> None:
        self.rest: str | None = None
        self._numbers, self._closing, self._eager = numbers, closing, eager
        self._call: JsonCall | None = None
        self._raw = opened
        """Text that is content unless it belongs to a call."""
        self._told = False
        self._mark = ""
        """The part of `closing` that has come."""

    def feed(self, text: str) -> Iterator[Part]:
        while text and self.rest is None:
            text = (yield from self._in_call(text)) if self._call is not None else (yield from self._between(text))

    def finish(self) -> Iterator[Part]:
        if self._call is not None and not self._call.told:
            yield self._raw + self._call.text
        elif self._raw and not self._told:
            yield self._raw

    def _in_call(self, text: str) -> Generator[Part, None, str]:
        """-> The text after the call."""
        call = self._call
        assert call is not None
        calls, rest = call.feed(text)
        yield from calls
        if call.told:
            self._raw, self._told = "", True
        if call.failed:
            yield self._raw + call.text
            self.rest, self._raw = rest, ""
        if call.over:
            self._call = None
        return rest

    def _between(self, text: str) -> Generator[Part, None, str]:
        """-> The text from the next object on."""
        for place, char in enumerate(text):
            if char == "{" and not self._mark:
                self._call = JsonCall(self._numbers, eager=self._eager)
                return text[place:]
            if self._closing.startswith(self._mark + char):
                self._mark += char
            elif char not in BETWEEN or self._mark:
                yield from self._broken_off()
                self.rest = text[place:]
                return ""
            self._raw += char
            if self._closing and self._mark == self._closing:
                self.rest = text[place + 1 :]
                if not self._told:
                    yield self._raw
                return ""
        return ""

    def _broken_off(self) -> Iterator[Part]:
        """Something else follows the calls: it is content if it is more than white space."""
        if self._raw and (not self._told or self._mark):
            yield self._raw
