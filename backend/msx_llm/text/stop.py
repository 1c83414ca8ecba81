"""Finds stop strings in a text that comes in pieces."""

from typing import NamedTuple


class StopMatch(NamedTuple):
    """`start` and `end` count from the characters that were held before the last piece."""

    stop: str
    start: int
    end: int


class StopFinder:
    """Finds the stop string that a text reaches first, as if it came character by character: the one that ends first,
    and among those that end together the longest. The result does not depend on the pieces.

    Time is linear in the text, and memory in as much of the stop strings as the text has reached.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = {stop: _StopProgress(stop) for stop in stops if stop}
        self.held = 0
        """How many characters at the end of the text may become a part of a stop string."""

    def __bool__(self) -> bool:
        """Whether there is anything to find."""
        return bool(self._stops)

    def __contains__(self, text: str) -> bool:
        return text in self._stops

    def feed(self, piece: str) -> StopMatch | None:
        """Read the next piece of the text. Nothing follows a match."""
        found = [
            StopMatch(stop, self.held + place - len(stop), self.held + place)
            for stop, progress in self._stops.items()
            if (place := progress.feed(piece))
        ]
        if not found:
            self.held = max((one.reached for one in self._stops.values()), default=0)
        return min(found, key=lambda it: (it.end, it.start), default=None)


class _StopProgress:
    """How far a text has come in one stop string, by Knuth, Morris and Pratt.

    The table grows only as far as the text comes, so that a long stop string costs nothing before.
    """

    __slots__ = ("_borders", "_stop", "reached")

    def __init__(self, stop: str) -> None:
        self._stop, self.reached = stop, 0
        self._borders = [0]
        """Number of characters that the first 1, 2, … of the stop string begin and also end with."""

    def feed(self, piece: str) -> int:
        """Returns how many characters of the piece complete the stop string, 0 if they do not."""
        stop, borders = self._stop, self._borders
        if not self.reached and stop[0] not in piece:
            return 0
        for place, character in enumerate(piece, 1):
            while self.reached and character != stop[self.reached]:
                self.reached = borders[self.reached - 1]
            if character != stop[self.reached]:
                continue
            self.reached += 1
            if self.reached == len(stop):
                return place
            if self.reached > len(borders):
                self._grow(character)
        return 0

    def _grow(self, last: str) -> None:
        """Add the border of the characters that were reached, of which this is the last."""
        stop, borders = self._stop, self._borders
        border = borders[-1]
        while border and last != stop[border]:
            border = borders[border - 1]
        borders.append(border + (last == stop[border]))
