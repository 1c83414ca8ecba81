"""The rows of a step, made of the texts that it has."""

from msx_llm.sequence import TokenSequence
from msx_llm.speculator import Drafts
from msx_llm.step import Decode, Preparation, TokenChunk


def preparation(batch: list[TokenSequence]) -> tuple[Preparation, ...]:
    """Take the steps that must be done before the batch's."""
    steps = tuple(step for sequence in batch for step in sequence.before)
    for sequence in batch:
        sequence.before.clear()
    return steps


def chunk(sequence: TokenSequence, count: int) -> TokenChunk:
    """The next `count` tokens that are not computed."""
    start, slot = sequence.computed, sequence.slot
    assert slot is not None
    return TokenChunk(slot, start, tuple(sequence.tokens[start : start + count]))


def rows_of(batch: list[TokenSequence], drafts: Drafts) -> list[list[TokenChunk]]:
    """The last token of each text, and its drafted ones, in rows of their own."""
    if not drafts:
        return [[chunk(sequence, 1)] for sequence in batch]
    return [[chunk(sequence, 1), *_drafted(sequence, draft)] for sequence, draft in zip(batch, drafts, strict=True)]


def _drafted(sequence: TokenSequence, draft: list[int]) -> list[TokenChunk]:
    assert sequence.slot is not None
    return [TokenChunk(sequence.slot, place, (token,)) for place, token in enumerate(draft, len(sequence.tokens))]


def decode_step(batch: list[TokenSequence], drafts: Drafts) -> Decode:
    """A step of the last token of each, and of what was drafted behind it."""
    places = [(row.slot, row.tokens[0], row.start) for rows in rows_of(batch, drafts) for row in rows]
    slots, tokens, positions = zip(*places, strict=True)
    return Decode(slots, tokens, positions)
