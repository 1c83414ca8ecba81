"""Leases of worker groups that have outlived a frontend: they get the same devices and ports again."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from msx_frontend.devices.lease import Lease
from msx_frontend.devices.port_blocks import PortBlock


class KeptLease(NamedTuple):
    model_key: str
    numbers: tuple[int, ...]
    ports: PortBlock

    @classmethod
    def parse(cls, note: Mapping[str, Any]) -> "KeptLease":
        ports = PortBlock(note["port_block"], note["environment"])
        return cls(note["model_key"], tuple(note["numbers"]), ports)


def note_of(lease: Lease) -> dict[str, Any]:
    """Return the note that `KeptLease.parse` reads."""
    return {
        "model_key": lease.model_key,
        "numbers": lease.numbers,
        "port_block": lease.port_block,
        "environment": dict(lease.environment),
    }


class KeptLeases:
    """Each is taken once, in the order of their groups' starts."""

    def __init__(self, kept: Iterable[KeptLease] = ()) -> None:
        self._kept = list(kept)

    def take(self, model_key: str, size: int, allowed: Collection[int]) -> KeptLease | None:
        """The next one of this model that has so many devices, all of them allowed."""
        for one in self._kept:
            if one.model_key == model_key and len(one.numbers) == size and set(one.numbers) <= set(allowed):
                self._kept.remove(one)
                return one
        return None
