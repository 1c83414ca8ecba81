"""How much room a decoder has for adapters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AdapterShape:
    """`places` adapters on the device at once, of up to `rank` ranks each, for layers with these names."""

    places: int
    rank: int
    targets: frozenset[str]

    @property
    def width(self) -> int:
        return self.places * self.rank
