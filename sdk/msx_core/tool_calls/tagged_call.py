"""Calls whose arguments are tags: `<function=name><parameter=key>value</parameter></function>` and the like."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msx_core.tool_calls.json_call import decoded
from msx_core.tool_calls.parts import CallNumbers, Part, known_prefix
from msx_core.tool_calls.rewritten_call import RewrittenCall

MOST = 400
"""The most characters of a tag behind its opening."""


class CallTag(NamedTuple):
    """`whole` matches all of it, with its `name`, and perhaps `text`, true or false: whether the value is one.
    `opening` is how it begins."""

    opening: str
    whole: re.Pattern[str]

    @classmethod
    def of(cls, opening: str, closing: str) -> "CallTag":
        """A tag with a name of one line between two literal texts."""
        return cls(opening, re.compile(f"{re.escape(opening)}(?P<name>[^{closing[0]}]*){re.escape(closing)}"))


class CallTags(NamedTuple):
    """`close`: what stands behind the function's end, perhaps; "" for nothing. `around`: what may stand around a value,
    and does not belong to it."""

    function: CallTag
    parameter: CallTag
    parameter_end: str
    function_end: str
    close: str = ""
    around: str = "\n"


class TaggedCall(RewrittenCall):
    """Reads one call. Reports text values as they grow, other values when they are complete."""

    def __init__(self, tags: CallTags, numbers: CallNumbers, opened: str) -> None:
        text = tags.function.opening if opened.endswith(tags.function.opening) else ""
        super().__init__(numbers, opened[: len(opened) - len(text)], text, self._function)
        self._tags = tags
        self._types: dict[str, Any] = {}
        self._members = 0
        self._key = self._value = ""
        self._stated: str | None = None

    def _function(self) -> Iterator[Part]:
        tag = self._tag(self._tags.function)
        if tag is None:
            return
        name = tag.strip()
        if name not in self._numbers.schemas:
            yield from self._not_a_call()
            return
        self._told, self._begun = True, self._numbers.begin(name)
        properties = self._numbers.schemas[name].get("properties")
        self._types = properties if isinstance(properties, dict) else {}
        yield from self._tell("{")
        self._move(self._parameters)

    def _parameters(self) -> Iterator[Part]:
        self._text, end = self._text.lstrip(), self._tags.function_end
        if self._text.startswith(end):
            self._text = self._text[len(end) :]
            yield from self._tell("}")
            self._move(self._close)
        elif not end.startswith(self._text) and (tag := self._tag(self._tags.parameter)) is not None:
            self._key = tag.strip()
            yield from self._tell(f"{', ' if self._members else ''}{json.dumps(self._key, ensure_ascii=False)}: ")
            self._members += 1
            self._move(self._first_line)

    def _first_line(self) -> Iterator[Part]:
        """The line feed before a value does not belong to it."""
        if self._text:
            self._text = self._text.removeprefix(self._tags.around)
            self._value = ""
            if self._is_text:
                yield from self._tell('"')
            self._move(self._in_value)

    def _in_value(self) -> Iterator[Part]:
        closing = self._tags.parameter_end
        value, end, rest = self._text.partition(closing)
        if end:
            self._text = rest
            yield from self._end_value(value.removesuffix(self._tags.around))
            self._move(self._parameters)
        elif self._is_text:
            sure = len(value) - known_prefix(value, (closing, self._tags.around + closing))
            self._text = value[sure:]
            yield from self._tell(_quoted(value[:sure]))

    def _end_value(self, value: str) -> Iterator[Part]:
        if self._is_text:
            yield from self._tell(_quoted(value) + '"')
        else:
            plain = value.strip()
            lowered = plain.lower() if plain in ("True", "False", "None") else plain
            found = "null" if lowered == "none" else lowered
            known = found == "null" or decoded(found) is not None
            yield from self._tell(found if known else f'"{_quoted(value)}"')

    def _close(self) -> Iterator[Part]:
        """The end of the tool call, if the model writes it."""
        after, close = self._text.lstrip(), self._tags.close
        if after.startswith(close):
            self.rest = after[len(close) :] if close else self._text
        elif not close.startswith(after):
            self.rest = after
        yield from ()

    # -- what they share --

    @property
    def _is_text(self) -> bool:
        if self._stated is not None:
            return self._stated == "true"
        kind = self._types.get(self._key)
        return isinstance(kind, dict) and kind.get("type") == "string"

    def _tag(self, tag: CallTag) -> str | None:
        """The name in the tag at the beginning of the text; None if the tag is incomplete, or is another text."""
        text, most = self._text.lstrip(), len(tag.opening) + MOST
        if (found := tag.whole.match(text)) and found.end() <= most:
            rest = text[found.end() :]
            self._raw += self._text[: len(self._text) - len(rest)]
            self._text = rest
            self._stated = found.groupdict().get("text")
            return found["name"]
        if text and not (tag.opening.startswith(text[: len(tag.opening)]) and len(text) <= most):
            self._give_up()
        return None

    def _give_up(self) -> None:
        """The text that follows cannot belong to a call."""
        self._move(self._not_a_call if not self._told else self._stop)

    def _not_a_call(self) -> Iterator[Part]:
        yield self._raw
        self.rest = self._text

    def _stop(self) -> Iterator[Part]:
        yield from self._tell("}")
        self.rest = self._text


def _quoted(text: str) -> str:
    """The inside of a text of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
