"""On what terms a worker group has its devices: who may be on them besides."""

from __future__ import annotations

from typing import NamedTuple

from msx_sdk.config import ModelConfig


class Terms(NamedTuple):
    group: bool = False
    """A parallel group, or one process with several devices (`parallelType`)."""
    shares: bool = False
    """With other groups that say so, too (`shareDevices`)."""
    exclusive: bool = False
    """Nobody else is on its devices (`exclusiveDevices`, `exclusive_group_devices`)."""

    def beside(self, other: Terms) -> bool:
        """Whether both may be on one device."""
        if self.exclusive or other.exclusive:
            return False
        return not (self.group and other.group) or (self.shares and other.shares)


SHARED = Terms()


def terms_of(config: ModelConfig, *, exclusive_groups: bool) -> Terms:
    group = config.layout.devices > 0
    return Terms(group, group and config.share_devices, config.exclusive_devices or (group and exclusive_groups))
