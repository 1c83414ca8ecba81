"""Long texts in pieces whose tokens, one after the other, are those of the whole text."""

import re
from collections.abc import Iterator
from itertools import pairwise

PIECE = 16_384
"""Characters of a piece at least, unless the text ends."""
PLACE = re.compile("[A-Za-z](?= [A-Za-z])")
"""The end of a word before one space and another word, in ASCII: the only place where a text is divided. No normal form
moves anything across it, and words are what tokenizers tell apart; `divides` says for which of them that is proven."""


def pieces_of(text: str, size: int = PIECE) -> list[str]:
    """One piece if there is no such place. Each piece but the first begins with its space."""
    ends = [0, *_places(text, size), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


def place_before(text: str, place: int, size: int = PIECE) -> int:
    """The last place for a division at `place` or before it, and at most `size` characters before; 0 if there is
    none."""
    start = max(place - size, 0)
    found = [match.end() for match in PLACE.finditer(text, start, min(place + 2, len(text))) if match.end() <= place]
    return found[-1] if found else 0


def _places(text: str, size: int) -> Iterator[int]:
    place = size
    while (found := PLACE.search(text, place)) is not None:
        yield found.end()
        place = found.end() + size
