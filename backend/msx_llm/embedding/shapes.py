"""The shapes for which graphs are compiled, and the choice of the waiting texts that share a call."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class BatchShape(NamedTuple):
    rows: int
    length: int


@dataclass(frozen=True)
class BatchShapes:
    """`rows` and `lengths` are ascending; a shape has at most `tokens` tokens, unless it has a single row."""

    rows: tuple[int, ...]
    lengths: tuple[int, ...]
    tokens: int

    def __iter__(self) -> Iterator[BatchShape]:
        return (BatchShape(rows, length) for length in self.lengths for rows in self.rows_of(length))

    def rows_of(self, length: int) -> list[int]:
        return [rows for rows in self.rows if rows == 1 or rows * length <= self.tokens]

    def length_of(self, tokens: int) -> int:
        """The shortest length that holds a text of this many tokens, which must not exceed the longest."""
        return self.lengths[bisect_left(self.lengths, tokens)]

    def choose(self, sizes: Sequence[int]) -> tuple[list[int], BatchShape]:
        """Chooses the next texts by each one's number of tokens, in the order of arrival. The oldest text is always
        among them, with others of its length; shorter texts take rows that would stay empty."""
        lengths = [self.length_of(size) for size in sizes]
        length = lengths[0]
        alike = [index for index, other in enumerate(lengths) if other == length]
        rows = self._rows_for(len(alike), length)
        shorter = [index for index, other in enumerate(lengths) if other < length]
        shorter.sort(key=lambda index: -lengths[index])
        return (alike + shorter)[:rows], BatchShape(rows, length)

    def _rows_for(self, count: int, length: int) -> int:
        """Rows of the shape, of which a quarter may be empty at most; otherwise a smaller shape is taken now and the
        rest later."""
        possible = self.rows_of(length)
        larger = next((rows for rows in possible if rows >= count), None)
        if larger is not None and 4 * count >= 3 * larger:
            return larger
        return max(rows for rows in possible if rows <= count)


def shapes_of(rows: Sequence[int], lengths: Sequence[int], longest: int, tokens: int) -> BatchShapes:
    """There is always a shape for a single text, and one for the longest text."""
    fitting = {length for length in lengths if length < longest}
    return BatchShapes(tuple(sorted({1, *rows})), tuple(sorted({*fitting, longest})), tokens)
