"""One adapter of a model."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True)
class Adapter:
    name: str
    folder: str
    rank: int

    @property
    def root(self) -> bytes:
        """The beginning of the names of its texts' blocks: no other adapter's keys fit them."""
        return blake2b(self.name.encode(), digest_size=16).digest()
