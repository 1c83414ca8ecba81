"""Hashes of the beginning of a prompt: equal ones stand for equal beginnings."""

from msx_frontend.job import Beginning, Text

FIRST = 64
"""Characters or bytes of the first blocks."""
GROWTH = 8
"""A later block is an eighth of what is before it, so that a long prompt has tens of blocks and not thousands."""
LONGEST = 256 << 10
"""Most characters of a prompt that are looked at."""
TOKEN = 4
"""Characters that a token id counts as."""


def _ends() -> tuple[int, ...]:
    ends, end = list[int](), 0
    while (end := end + max(FIRST, end // GROWTH)) <= LONGEST:
        ends.append(end)
    return tuple(ends)


ENDS = _ends()
"""Where blocks end. They are the same in each prompt: a longer one has the blocks of its beginning."""
TOKEN_ENDS = tuple(end // TOKEN for end in ENDS)


def blocks_of(beginning: Beginning) -> list[int]:
    """A hash for each whole block, and all that is before it. They are of this process alone."""
    text = beginning.text
    known, start, hashes = hash(beginning.of), 0, list[int]()
    for end in _ends_in(text):
        if end > len(text):
            break
        known = hash((known, text[start:end]))
        hashes.append(known)
        start = end
    return hashes


def _ends_in(text: Text) -> tuple[int, ...]:
    return TOKEN_ENDS if isinstance(text, tuple) else ENDS
