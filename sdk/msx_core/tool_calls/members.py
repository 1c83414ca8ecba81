"""Reads one JSON object as it grows: values of its members are reported before they are complete."""

from collections.abc import Callable
from typing import NamedTuple

SPACE = " \t\n\r"
OPENING, CLOSING = "{[", "}]"


class MemberPiece(NamedTuple):
    """A piece of the raw text of a member's value. `key` is raw, too: the text between its quotes."""

    key: str
    text: str
    ended: bool


class ObjectReader:
    """Takes the text of an object, from its opening brace. Text that is not JSON makes it `broken`."""

    def __init__(self) -> None:
        self.over = self.broken = False
        self._state: Callable[[str], None] = self._at_start
        self._key = self._value = ""
        self._depth = 0
        self._quoted = self._escaped = False
        self._pieces: list[MemberPiece] = []

    def feed(self, text: str) -> tuple[list[MemberPiece], int]:
        """Returns the new pieces of values, and the number of characters that belong to the object."""
        self._pieces = []
        taken = 0
        while taken < len(text) and not (self.over or self.broken):
            self._state(text[taken])
            taken += not self.broken
        if self._value:
            self._tell(ended=False)
        return self._pieces, taken

    def _at_start(self, char: str) -> None:
        self._go(char == "{", self._before_key)

    def _before_key(self, char: str) -> None:
        if char == '"':
            self._key, self._state = "", self._in_key
        elif char == "}":
            self.over = True
        else:
            self._go(char in SPACE or char == ",", self._before_key)

    def _in_key(self, char: str) -> None:
        if char == '"' and not self._escaped:
            self._state = self._before_colon
        else:
            self._escaped = char == "\\" and not self._escaped
            self._key += char

    def _before_colon(self, char: str) -> None:
        if char not in SPACE:
            self._go(char == ":", self._before_value)

    def _before_value(self, char: str) -> None:
        if char in SPACE:
            return
        self._depth, self._quoted = int(char in OPENING), char == '"'
        self._value += char
        self._go(char not in ",}]:", self._in_value if self._depth or self._quoted else self._in_scalar)

    def _in_value(self, char: str) -> None:
        """An object, a list or a text."""
        self._value += char
        if self._quoted:
            self._in_quotes(char)
        elif char == '"':
            self._quoted = True
        else:
            self._depth += (char in OPENING) - (char in CLOSING)
        if not self._depth and not self._quoted:
            self._tell(ended=True)

    def _in_quotes(self, char: str) -> None:
        self._quoted = char != '"' or self._escaped
        self._escaped = char == "\\" and not self._escaped

    def _in_scalar(self, char: str) -> None:
        if char in SPACE or char in ",}":
            self._tell(ended=True)
            self._before_key(char)
        else:
            self._value += char

    def _tell(self, *, ended: bool) -> None:
        self._pieces.append(MemberPiece(self._key, self._value, ended))
        self._value = ""
        if ended:
            self._state = self._before_key

    def _go(self, valid: bool, state: Callable[[str], None]) -> None:
        self._state, self.broken = state, not valid
