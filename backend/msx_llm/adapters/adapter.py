"""One adapter of a model."""

from hashlib import blake2b

import msgspec


class Adapter(msgspec.Struct, frozen=True, array_like=True):
    """`stamp`: what its files were when they were checked (`files.stamp_of`). `id`: of the call that loaded it while
    the model runs; empty for one of the archive."""

    name: str
    folder: str
    stamp: str = ""
    id: str = ""

    @property
    def root(self) -> bytes:
        """The beginning of the names of its texts' blocks: the keys of no other adapter fit them, nor those of one
        that was loaded under this name before."""
        return blake2b(f"{self.name}\0{self.id}".encode(), digest_size=16).digest()
