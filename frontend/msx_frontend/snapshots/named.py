"""The snapshot that the key `model_snapshot` names instead of having its models."""

from __future__ import annotations

import msgspec

from msx_frontend.config import Snapshot
from msx_frontend.snapshots.serializer import MODEL_SNAPSHOT, SnapshotError, SnapshotSerializer

LAST = "last"
"""The newest one, for a server without a state of its own."""


def is_name(text: str) -> bool:
    """Anything but JSON."""
    return bool(text.strip()) and text.lstrip()[0] not in '{["'


def snapshot_named(name: str, serializer: SnapshotSerializer) -> Snapshot | None:
    """Its models; None for `last` where there is no snapshot. Raises SnapshotError."""
    name = name.strip()
    saved = serializer.get_last() if name == LAST else serializer.get(name)
    if saved is None:
        return None
    try:
        models = msgspec.json.decode(saved.properties.get(MODEL_SNAPSHOT, ""), type=Snapshot)
    except msgspec.MsgspecError as error:
        raise SnapshotError(f"model_snapshot={name}: {saved.name} does not say its models: {error}") from error
    return msgspec.structs.replace(models, last_known=name == LAST)
