"""A call as a JSON object that has a name and arguments."""

from collections.abc import Iterator

import msgspec

from msx_core.tool_calls.members import MemberPiece, ObjectReader
from msx_core.tool_calls.parts import CallNumbers, ToolCall

ARGUMENTS = ("arguments", "parameters")
"""Models use either name for the arguments."""
NAME = "name"
NOTHING = ("", "null")


class JsonCall:
    """Reports a call when its arguments begin, or at its end if it has none; reports the arguments as the model writes
    them.

    `eager`: report the call as soon as its name is known, for texts that are constrained to the tools' schemas.
    """

    def __init__(self, numbers: CallNumbers, *, eager: bool = False) -> None:
        self._numbers, self._eager = numbers, eager
        self._members = ObjectReader()
        self._begun: ToolCall | None = None
        self._name = self._raw_name = ""
        self._key = self._waiting = ""
        """The key of the arguments, and the part of them that was not reported yet."""
        self._has_arguments = False
        """Some arguments were reported."""
        self._grow = False
        """The arguments are an object or a list, and are reported as they grow."""
        self.text = ""
        """All the text that was read."""
        self.told = self.failed = False
        """It is known whether this is a call of one of the tools."""

    def feed(self, text: str) -> tuple[list[ToolCall], str]:
        """Returns what to report, and the text after the object."""
        pieces, taken = self._members.feed(text)
        self.text += text[:taken]
        calls = [call for piece in pieces for call in self._read(piece)]
        if self._members.over and self._known:
            calls += self._end()
        self.failed = not self.told and (self.failed or self._members.broken or self._members.over)
        return calls, text[taken:]

    @property
    def over(self) -> bool:
        return self._members.over or self._members.broken or self.failed

    @property
    def _known(self) -> bool:
        return self._name in self._numbers.schemas

    def _read(self, piece: MemberPiece) -> Iterator[ToolCall]:
        if piece.key == NAME and not self._known:
            yield from self._read_name(piece)
        elif piece.key in ARGUMENTS and self._key in ("", piece.key):
            self._key = piece.key
            yield from self._read_arguments(piece)

    def _read_name(self, piece: MemberPiece) -> Iterator[ToolCall]:
        self._raw_name += piece.text
        if not piece.ended:
            return
        name = decoded(self._raw_name)
        self._name = name if isinstance(name, str) else ""
        self.failed = not self._known
        if self._known and (self._eager or self._waiting):
            yield from self._begin()

    def _read_arguments(self, piece: MemberPiece) -> Iterator[ToolCall]:
        """Reports an object as it grows, other values when they are complete: a text that holds JSON, or null."""
        self._waiting += piece.text
        self._grow = self._grow or self._waiting[:1] in "{["
        if not self._grow:
            if not piece.ended:
                return
            self._waiting = _plain(self._waiting)
        if self.told:
            yield from self._more()
        elif self._known:
            yield from self._begin()

    def _begin(self) -> Iterator[ToolCall]:
        self.told, self._begun = True, self._numbers.begin(self._name)
        if self._begun is not None:
            yield self._begun._replace(arguments=self._taken())

    def _more(self) -> Iterator[ToolCall]:
        if self._begun is not None and self._waiting:
            yield ToolCall(self._begun.number, self._taken())

    def _end(self) -> Iterator[ToolCall]:
        """A call without arguments gets an empty object."""
        if not self.told:
            self._waiting = "{}"
            yield from self._begin()
        elif self._begun is not None and not self._has_arguments:
            yield ToolCall(self._begun.number, "{}")

    def _taken(self) -> str:
        taken, self._waiting = self._waiting, ""
        self._has_arguments = self._has_arguments or bool(taken)
        return taken


def decoded(text: str) -> object:
    """The decoded value; None if the text is not JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _plain(text: str) -> str:
    if text in NOTHING:
        return "{}"
    value = decoded(text)
    return value if isinstance(value, str) else text
