"""Whether a worker group shares its devices, and with which others."""

from __future__ import annotations

from typing import NamedTuple

from msx_core.config import ModelConfig


class SharingTerms(NamedTuple):
    group: bool = False
    """A parallel group, or one process with several devices (`parallelType`)."""
    shares: bool = False
    """Whether it shares with other groups whose configs allow it too (`shareDevices`)."""
    exclusive: bool = False
    """No other worker is on its devices (`exclusiveDevices`, `exclusive_group_devices`)."""
    most: int | None = None
    """The most workers of its own model on one device (`workersPerDevice`); None: any number."""

    def may_share_with(self, other: SharingTerms) -> bool:
        """Whether both may be on one device."""
        if self.exclusive or other.exclusive:
            return False
        return not (self.group and other.group) or (self.shares and other.shares)


SHARED = SharingTerms()


def terms_of(config: ModelConfig, *, exclusive_groups: bool) -> SharingTerms:
    group = config.layout.devices > 0
    exclusive = config.exclusive_devices or (group and exclusive_groups)
    return SharingTerms(group, group and config.share_devices, exclusive, config.workers_per_device)
