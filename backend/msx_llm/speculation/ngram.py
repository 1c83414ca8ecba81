"""Prompt look-up: a text goes on as it did when its last tokens stood in it before."""

from collections.abc import Sequence


class NgramIndex:
    """Where each run of `size` tokens of one text was last followed by something. It grows with the text."""

    def __init__(self, size: int) -> None:
        self._size, self._read = size, size
        self._ends: dict[tuple[int, ...], int] = {}

    def read(self, tokens: Sequence[int], stop: int) -> None:
        """Notes the runs in the first `stop` tokens, of which all but the new ones are noted already."""
        for end in range(self._read, stop):
            self._ends[tuple(tokens[end - self._size : end])] = end
        self._read = max(self._read, stop)

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        """Tokens that followed the last ones before. Where they reach the end of the text, it is taken to go on
        repeating itself."""
        self.read(tokens, len(tokens))
        place = self._ends.get(tuple(tokens[-self._size :]))
        if place is None or most < 1:
            return []
        period = len(tokens) - place
        return [tokens[place + number % period] for number in range(most)]
