"""Finds plugins among installed packages and in the folders of `plugins_path`."""

import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple

from msx_core.entry_points import found
from msx_core.failures import summary
from msx_core.start_errors import StartError

START_SCRIPTS = "msx.start_scripts"
"""Group of entry points that lead to functions for start scripts of MindSpore Serving."""


class PluginError(StartError):
    """A plugin that cannot be used; the message names it and the remedy."""


class Plugin(NamedTuple):
    """`label` names the plugin and its package in messages; `value` is the object of its entry point; `package` is ""
    where it is in none."""

    name: str
    label: str
    value: Any
    package: str = ""


def reason(error: BaseException) -> str:
    return f"it called sys.exit({error.code!r})" if isinstance(error, SystemExit) else summary(error)


def use_plugins_path(folders: Sequence[Path]) -> None:
    """Appends the folders to sys.path. Raises PluginError for a path that is not a folder."""
    for folder in folders:
        if not folder.is_dir():
            raise PluginError(f"plugins_path (--plugins-path): {folder} is not an existing folder")
        if (path := str(folder.resolve())) not in sys.path:
            sys.path.append(path)


def load_plugins(group: str) -> list[Plugin]:
    """All plugins of a group, by name. Raises PluginError for the first one that cannot be imported."""
    points = found(group)
    return [_load(points[name]) for name in sorted(points)]


def load_plugin(group: str, name: str, key: str) -> Plugin:
    """The plugin that the configuration key `key` names. Raises PluginError."""
    points = found(group)
    if name in points:
        return _load(points[name])
    known = ", ".join(sorted(points)) or "none"
    raise PluginError(
        f"{key}: the group {group} does not have a plugin {name} (found: {known}): install its package, or add its "
        "folder to plugins_path"
    )


def _load(point: EntryPoint) -> Plugin:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
    label = f"{point.name} ({point.value} of {package})"
    try:
        return Plugin(point.name, label, point.load(), point.dist.name if point.dist else "")
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"The plugin {label} cannot be loaded: {reason(error)}. Correct it, uninstall it, or take it out of "
            "plugins_path."
        ) from error
