"""The drafts of one text, and how many of their tokens it is expected to accept."""

from collections.abc import Sequence

from msx_llm.speculation.ngram import NgramIndex
from msx_llm.speculation.offered import OfferedDraft

WEIGHT = 0.2
"""The weight of a new observation."""


def learned(rate: float, drafted: int, accepted: int, weight: float) -> float:
    """Each accepted token is an observation; so is the first that was not, those behind it are not."""
    for _ in range(accepted):
        rate += weight * (1 - rate)
    return rate if accepted >= drafted else rate - weight * rate


class TextDrafts:
    """`rate`: the share of drafted tokens that the text accepts, as far as the tokens before them were accepted."""

    def __init__(self, index: NgramIndex | OfferedDraft, most: int, rate: float) -> None:
        self._index, self._most, self.rate = index, most, rate
        self._guess: tuple[int, int] | None = None
        """A place in the text, and the token that was proposed for it."""

    def offer(self, length: int, draft: list[int]) -> None:
        """A small model wrote this for the text when it had `length` tokens."""
        if isinstance(self._index, OfferedDraft):
            self._index.offer(length, draft)

    def offered(self, tokens: Sequence[int]) -> bool:
        return isinstance(self._index, OfferedDraft) and self._index.offered(tokens)

    def read(self, tokens: Sequence[int], stop: int) -> None:
        """The first `stop` tokens are computed: their runs are noted piece by piece, as a long prompt is."""
        self._index.read(tokens, stop)

    def propose(self, tokens: Sequence[int], room: int) -> list[int]:
        self._watch(tokens)
        draft = self._index.draft(tokens, min(self._most, room))
        self._guess = (len(tokens), draft[0]) if draft else None
        return draft

    def _watch(self, tokens: Sequence[int]) -> None:
        """Learn from a proposal that was not drafted: it costs nothing, and shows whether it would be accepted."""
        if self._guess is not None and len(tokens) > self._guess[0]:
            place, token = self._guess
            self.rate = learned(self.rate, 1, int(tokens[place] == token), WEIGHT)

    def note(self, drafted: int, accepted: int) -> None:
        if drafted:
            self._guess = None  # it is among these
        self.rate = learned(self.rate, drafted, accepted, WEIGHT)
