"""The record of a version in the state, as calls change it."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from msx_frontend.models.state.store import UNANSWERED, StoredVersion
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.replicas import capped

Bounds = tuple[int, int]
"""The least and the most workers."""
Counts = Sequence[tuple[ModelVersion, Bounds]]
"""The bounds of a version, or of each of its stages."""


def new_record(version: ModelVersion, counts: Counts, *, is_default: bool, answered: bool = True) -> StoredVersion:
    """The record of a version that is being registered. `answered`: the next start is to have it in any case."""
    source = version.source
    record = StoredVersion(
        name=source.name,
        version=source.version,
        url=source.url,
        digest=source.digest,
        options=source.options,
        min_workers=0,
        max_workers=0,
        is_default=is_default,
        created_at=time.time() if answered else UNANSWERED,
    )
    return with_workers(record, version, counts)


def current_record(version: ModelVersion, *, is_default: bool) -> StoredVersion:
    """The record that the state has; a new one where its registration was taken back."""
    if version.record is None:
        counts = [(part, (part.workers.least, part.workers.most)) for part in version.parts]
        return new_record(version, counts, is_default=is_default)
    return msgspec.structs.replace(version.record, is_default=is_default)


def with_workers(record: StoredVersion, version: ModelVersion, counts: Counts) -> StoredVersion:
    """The same record with these workers, as far as devices go. Stages that `counts` does not name keep theirs."""
    counts = [(part, capped(part.resources, *bounds)) for part, bounds in counts]
    if not version.stages:
        ((_, (least, most)),) = counts
        return msgspec.structs.replace(record, min_workers=least, max_workers=most)
    stages = _of_stages(record, version, dict(counts))
    least, most = (sum(ends) for ends in zip(*stages.values(), strict=True))
    summed = msgspec.structs.replace(record, min_workers=least, max_workers=most)
    return with_options(summed, stage_workers=stages)


def _of_stages(record: StoredVersion, version: ModelVersion, counts: dict[ModelVersion, Bounds]) -> dict[str, Bounds]:
    kept = record.options.get("stage_workers", {})
    return {
        name: counts.get(stage) or kept.get(name) or (stage.workers.least, stage.workers.most)
        for name, stage in version.stages.items()
    }


def with_options(record: StoredVersion, **options: Any) -> StoredVersion:
    """The same record with these options of the registration beside, or instead of, its own."""
    return msgspec.structs.replace(record, options={**record.options, **options})
