"""Entry points of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msx_core.errors import HandlerLoadError
from msx_core.failures import summary

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


OWN = "msx."
"""Start of our groups' names."""


def names(group: str) -> list[str]:
    return sorted(found(group))


def load_named(group: str, name: str) -> Any:
    """The object of an entry point; None if no package has one of this name. Raises HandlerLoadError."""
    point = found(group).get(name)
    return None if point is None else _load(point)


def load_all(group: str) -> list[Any]:
    """The objects of all entry points of a group, sorted by name. Raises HandlerLoadError for the first that cannot be
    imported."""
    points = found(group)
    return [_load(points[name]) for name in sorted(points)]


def found(group: str) -> Mapping[str, EntryPoint]:
    """Entry points of one of our groups by name. If two packages have the same name, the first on Python's path is
    used."""
    return _scanned(tuple(sys.path)).get(group, {})


@lru_cache(1)
def _scanned(path: tuple[str, ...]) -> Mapping[str, Mapping[str, EntryPoint]]:
    """The entry points on Python's path by group: to look takes milliseconds, however many groups are wanted."""
    from importlib.metadata import entry_points  # a fifth of a worker's imports, and most handlers are files

    every = entry_points()
    groups: dict[str, dict[str, EntryPoint]] = {}
    for group in filter(lambda name: name.startswith(OWN), every.groups):
        points = groups[group] = {}
        for point in every.select(group=group):
            points.setdefault(point.name, point)
    return groups


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
        raise HandlerLoadError(
            f"the entry point {point.name} = {point.value} in the group {point.group}{package} cannot be loaded: "
            f"{summary(error)}; correct the package, or uninstall it"
        ) from error
