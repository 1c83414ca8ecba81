"""A draft that was written beforehand, by a small model."""

from collections.abc import Sequence


class OfferedDraft:
    """Holds for a text as long as it was then."""

    def __init__(self) -> None:
        self._length, self._draft = 0, list[int]()

    def offer(self, length: int, draft: list[int]) -> None:
        self._length, self._draft = length, draft

    def offered(self, tokens: Sequence[int]) -> bool:
        """A draft was offered for the text as it is, though it may be empty."""
        return len(tokens) == self._length

    def read(self, tokens: Sequence[int], stop: int) -> None:
        pass

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        return self._draft[: max(most, 0)] if self.offered(tokens) else []
