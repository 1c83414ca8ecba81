"""Words that must not occur in a text, as the tokens that would complete them."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

import numpy as np

from msx_llm.sampling.largest import Row


class BadWords:
    """The bad words of one text. Each of `sequences` [1 or more] has the tokens of a word, all below the vocabulary's
    size."""

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        self._alone: set[int] = set()
        self._last: dict[int, set[tuple[tuple[int, ...], int]]] = defaultdict(set)
        """Tokens before the last one, and the last, by the last but one."""
        for *before, last in sequences:
            if before:
                self._last[before[-1]].add((tuple(before), last))
            else:
                self._alone.add(last)
        self._always = np.array(sorted(self._alone), np.intp)
        longest = max((len(before) for ends in self._last.values() for before, _ in ends), default=0)
        self._said = deque[int](maxlen=longest)

    def ban(self, row: Row) -> None:
        """Sets logits [vocab] of tokens that would complete a word to minus infinity, in place."""
        row[self._always] = -np.inf
        if not self._said:
            return
        said = tuple(self._said)
        for before, last in self._last.get(said[-1], ()):
            if said[-len(before) :] == before:
                row[last] = -np.inf

    def count(self, token: int) -> None:
        """The text has grown by this token."""
        self._said.append(token)
