"""Opens the serializer of snapshots: files, or a plugin."""

from collections.abc import Mapping

from msx_core.plugins import SNAPSHOTS
from msx_frontend.config.surroundings import log_location
from msx_frontend.installed_plugins import load_plugin
from msx_frontend.snapshots.files import SnapshotFiles
from msx_frontend.snapshots.serializer import PluginSerializer, SnapshotSerializer


def make_serializer(env: Mapping[str, str], plugin: str | None, config: Mapping[str, str]) -> SnapshotSerializer:
    """The plugin that `snapshot_serializer` names, made with `config`; else files in `<logs>/config`. Raises
    PluginError."""
    if plugin is None:
        return SnapshotFiles(log_location(env) / "config")
    return PluginSerializer(load_plugin(SNAPSHOTS, plugin, "snapshot_serializer"), config)
