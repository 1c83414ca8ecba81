"""The interface of serializers, which keep snapshots, and the serializer of a plugin."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msx_core.plugins import SavedSnapshot, SnapshotSerializer
from msx_core.start_errors import StartError
from msx_frontend.installed_plugins import Plugin, reason

__all__ = ["MODEL_SNAPSHOT", "PluginSerializer", "SavedSnapshot", "SnapshotError", "SnapshotSerializer"]

MODEL_SNAPSHOT = "model_snapshot"


class SnapshotError(StartError):
    """A snapshot cannot be read: the message names it and the remedy."""


class PluginSerializer:
    """The serializer of a plugin. Its errors name the plugin."""

    def __init__(self, plugin: Plugin, config: Mapping[str, str]) -> None:
        self._label = plugin.label
        with self._named("cannot be started"):
            self._own: SnapshotSerializer = plugin.value(config)

    def save(self, snapshot: SavedSnapshot) -> None:
        with self._named("failed"):
            self._own.save(snapshot)

    def get(self, name: str) -> SavedSnapshot:
        with self._named(f"has no snapshot {name}"):
            return self._own.get(name)

    def get_last(self) -> SavedSnapshot | None:
        with self._named("cannot read its last snapshot"):
            return self._own.get_last()

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        try:
            yield
        except (Exception, SystemExit) as error:
            raise SnapshotError(
                f"The plugin {self._label} {what}: {reason(error)}. --ncs starts without snapshots."
            ) from error
