"""Reads the snapshot that the key `model_snapshot` names."""

import msgspec

from msx_frontend.config import NamedSnapshot, ServerConfig, Snapshot
from msx_frontend.snapshots.serializer import MODEL_SNAPSHOT, SnapshotError, SnapshotSerializer

LAST = "last"
"""The newest one, for a server without a state of its own."""


def with_snapshot(config: ServerConfig, serializer: SnapshotSerializer) -> ServerConfig:
    """The same settings with the models of the snapshot that they name. Raises SnapshotError."""
    named = config.model_snapshot
    if not isinstance(named, NamedSnapshot):
        return config
    if (snapshot := _read(named.name, serializer)) is not None:
        return msgspec.structs.replace(config, model_snapshot=snapshot)
    return msgspec.structs.replace(config, model_snapshot=None, load_models=config.load_models or named.load_models)


def _read(name: str, serializer: SnapshotSerializer) -> Snapshot | None:
    """The models of the snapshot; None for `last` when none exists."""
    saved = serializer.get_last() if name == LAST else serializer.get(name)
    if saved is None:
        return None
    try:
        models = msgspec.json.decode(saved.properties.get(MODEL_SNAPSHOT, ""), type=Snapshot)
    except msgspec.MsgspecError as error:
        raise SnapshotError(f"model_snapshot={name}: the models of {saved.name} cannot be read: {error}") from error
    return msgspec.structs.replace(models, last_known=name == LAST)
