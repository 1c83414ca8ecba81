"""The models of a snapshot, as records of the server's state."""

from typing import Any

from msx_frontend.config import ModelDefaults, NamedSnapshot, Snapshot
from msx_frontend.models.state.store import StoredVersion


def versions_of(snapshot: Snapshot | NamedSnapshot | None, *, state_is_new: bool) -> list[StoredVersion]:
    """The versions in the order of the snapshot. Its settings override the model's yaml, as in TorchServe.

    Empty for the last snapshot when the server has a state, because the state is newer.
    """
    if not isinstance(snapshot, Snapshot) or (snapshot.last_known and not state_is_new):
        return []
    return [_stored(name, version, said) for name, of in snapshot.models.items() for version, said in of.items()]


def _stored(name: str, version: str, said: ModelDefaults) -> StoredVersion:
    url = said.mar_name or f"{name}.mar"
    workers = 1 if said.min_workers is None else said.min_workers
    return StoredVersion(
        name=name,
        version=version,
        url=url,
        digest="",
        options=_options(name, url, said),
        min_workers=workers,
        max_workers=max(said.max_workers or 0, workers),
        is_default=said.default_version,
        created_at=0.0,
    )


def _options(name: str, url: str, said: ModelDefaults) -> dict[str, Any]:
    asked = {
        "batch_size": said.batch_size,
        "max_batch_delay": said.max_batch_delay,
        "response_timeout": said.response_timeout,
        "startup_timeout": said.startup_timeout,
    }
    return {"url": url, "model_name": name, **{key: value for key, value in asked.items() if value is not None}}
