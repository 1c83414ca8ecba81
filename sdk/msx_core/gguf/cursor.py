"""Reads values one after another from a file that nobody vouches for."""

import struct
from typing import Any, BinaryIO

from msx_core.gguf.errors import GgufError

MOST_BYTES = 64 << 20
"""Size of all metadata and names of tensors together: the largest vocabularies take 20 MiB. A text takes up to four
times its bytes."""
MOST_TEXT = 1 << 20
"""Bytes of one text; chat templates have some thousand."""
MOST_VALUES = 1 << 21
"""Values of one array; the largest vocabularies have 300,000 tokens, and twice as many merges."""
MOST_TOGETHER = 1 << 22
"""Values of all arrays: each becomes an object of dozens of bytes, of one in the file."""
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9


class Cursor:
    """A place in the file; each method raises GgufError for what is cut short or over a limit."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left, self._values_left = file, MOST_BYTES, MOST_TOGETHER

    @property
    def place(self) -> int:
        return self._file.tell()

    def bytes(self, count: int) -> bytes:
        self._left -= count
        if self._left < 0:
            raise GgufError(f"its metadata has more than {MOST_BYTES >> 20} MiB, the most that is read")
        data = self._file.read(count)
        if len(data) < count:
            raise GgufError("it ends within its header: it was not copied whole; copy or download it again")
        return data

    def number(self, form: str) -> Any:
        return self._numbers(form, 1)[0]

    def text(self, what: str, most: int = MOST_TEXT) -> str:
        if (count := self.number("Q")) > most:
            raise GgufError(f"{what} has {count:,} bytes; at most {most:,} are read")
        try:
            return self.bytes(count).decode()
        except UnicodeDecodeError:
            raise GgufError(f"{what} is not UTF-8") from None

    def value(self, what: str) -> Any:
        """A number, a text, or a list of either."""
        kind = self.number("I")
        if kind != _ARRAY:
            return self._values(kind, 1, what)[0]
        inner, count = self.number("I"), self.number("Q")
        if count > MOST_VALUES:
            raise GgufError(f"{what} has {count:,} values; at most {MOST_VALUES:,} are read")
        self._values_left -= count
        if self._values_left < 0:
            raise GgufError(f"its arrays have more than {MOST_TOGETHER:,} values together, the most that is read")
        return self._values(inner, count, what)

    def _values(self, kind: int, count: int, what: str) -> list[Any]:
        if kind == _TEXT:
            return [self.text(what) for _ in range(count)]
        if (form := _NUMBERS.get(kind)) is None:
            raise GgufError(f"{what} has values of the unknown type {kind}; the file is damaged, or of a later version")
        return [*self._numbers(form, count)]

    def _numbers(self, form: str, count: int) -> tuple[Any, ...]:
        each = struct.Struct(f"<{form}").size
        return struct.unpack(f"<{count}{form}", self.bytes(count * each))
