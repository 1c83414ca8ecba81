"""Where snapshots are kept: the interface that a plugin may take over, and what is used without one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from msx_frontend.start_errors import StartError


class SnapshotError(StartError):
    """A snapshot cannot be read: the message names it and the remedy."""


class SavedSnapshot(NamedTuple):
    """`name`: `20261121093000123-startup.cfg`. `properties`: of config.properties, and `model_snapshot` (JSON)."""

    name: str
    properties: dict[str, str]


class SnapshotSerializer(Protocol):
    """TorchServe's interface of this name. Methods may block: they are called on a thread, one at a time.

    They raise OSError or SnapshotError. What `save` raises is logged and stops nothing; what `get_last` raises at the
    start ends it.
    """

    def save(self, snapshot: SavedSnapshot) -> None:
        """Keep it. One of this name that is there already stays as it is."""

    def get(self, name: str) -> SavedSnapshot:
        """The one of this name."""

    def get_last(self) -> SavedSnapshot | None:
        """The newest by the time stamp in its name; None when there is none."""


def log_location(env: Mapping[str, str]) -> Path:
    """LOG_LOCATION, or TorchServe's ./logs."""
    return Path(env.get("LOG_LOCATION") or "logs")


def make_serializer(env: Mapping[str, str]) -> SnapshotSerializer:
    """Files in `config` below the folder of the logs."""
    from msx_frontend.snapshots.files import SnapshotFiles

    return SnapshotFiles(log_location(env) / "config")
