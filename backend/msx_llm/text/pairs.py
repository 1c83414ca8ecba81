"""Pairs of texts: their special tokens, and how they are cut."""

from __future__ import annotations

from typing import NamedTuple

import tokenizers


class PairPart(NamedTuple):
    """The first text (0), the second one (1), or the special token `id`; `segment` is that of its tokens."""

    text: int | None
    id: int
    segment: int


class PairFrame:
    """The parts of a pair in their order.

    The post-processor itself, given texts that were cut, would join each rest of the one with each of the other.
    """

    def __init__(self, parts: list[PairPart]) -> None:
        self._parts = parts

    @classmethod
    def of(cls, tokenizer: tokenizers.Tokenizer) -> PairFrame:
        texts = ("a", *tokenizer.get_vocab(with_added_tokens=False))
        text = next((text for text in texts if tokenizer.encode(text, add_special_tokens=False).ids), "")
        inner = tokenizer.encode(text, add_special_tokens=False)
        whole, numbers = tokenizer.post_process(inner, inner), tokenizer.encode(text, text).sequence_ids
        rows = zip(numbers, [None, *numbers], whole.ids, whole.type_ids, strict=False)
        return cls([PairPart(it, id, kind) for it, before, id, kind in rows if it is None or it != before])

    def joined(self, first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
        """Ids and segments."""
        ids, segments = [], []
        for part in self._parts:
            found = [part.id] if part.text is None else (first, second)[part.text]
            ids += found
            segments += [part.segment] * len(found)
        return ids, segments


def cut(ids: list[int], most: int, left: bool) -> list[int]:
    """The first `most` of them, or the last if `left`."""
    over = max(len(ids) - most, 0)
    return ids[over:] if left else ids[: len(ids) - over]


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """The sizes of both texts in `room` tokens, by Hugging Face's truncation `longest_first`.

    Where both are longer than half of it, the longer one gets the odd token.
    """
    if first + second <= room:
        return first, second
    if first > second:
        return longest_first(second, first, room)[::-1]
    shorter = min(first, room // 2)
    return shorter, room - shorter
