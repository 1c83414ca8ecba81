"""Saves snapshots on a thread, in the order in which they were taken."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from msx_frontend.config import ServerConfig
from msx_frontend.models.registry import Registry
from msx_frontend.snapshots.content import models_of, properties_of
from msx_frontend.snapshots.files import snapshot_name
from msx_frontend.snapshots.serializer import MODEL_SNAPSHOT, SavedSnapshot, SnapshotError, SnapshotSerializer

log = logging.getLogger("msx.snapshots")


class SnapshotWriter:
    """Writes nothing with `serializer=None` (`--ncs`). A snapshot that cannot be saved is logged."""

    def __init__(self, serializer: SnapshotSerializer | None, config: ServerConfig, registry: Registry) -> None:
        self._serializer = serializer
        self._registry = registry
        self._properties = properties_of(config)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._last = datetime.min
        self.started = False
        """The startup snapshot has been taken; earlier changes are part of it."""

    def startup(self) -> None:
        self.started = True
        self._take("startup")

    def changed(self) -> None:
        """After a change of the models."""
        if self.started:
            self._take("snapshot")

    async def close(self) -> None:
        """The shutdown snapshot, if the server had started; returns when all are saved."""
        if self.started:
            self._take("shutdown")
            self.started = False
        await asyncio.to_thread(self._thread.shutdown)

    def _take(self, kind: str) -> None:
        if self._serializer is None:
            return
        name = snapshot_name(kind, self._now())
        properties = {**self._properties, MODEL_SNAPSHOT: models_of(self._registry, name)}
        self._thread.submit(self._save, self._serializer, SavedSnapshot(name=name, properties=properties))

    def _now(self) -> datetime:
        """Local time, at least a millisecond after the last snapshot, so that names sort by time."""
        now = datetime.now()
        self._last = max(now, self._last + timedelta(milliseconds=1))
        return self._last

    @staticmethod
    def _save(serializer: SnapshotSerializer, snapshot: SavedSnapshot) -> None:
        try:
            serializer.save(snapshot)
        except (OSError, SnapshotError) as error:
            log.warning("the snapshot %s was not saved: %s", snapshot.name, error)
        except Exception:
            log.exception("the snapshot %s was not saved", snapshot.name)
