"""Entry points of installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msx_core.errors import HandlerLoadError
from msx_core.failures import summary

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


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


def found(group: str) -> dict[str, EntryPoint]:
    """Entry points of a group by name. If two packages have the same name, the first on Python's path is used."""
    from importlib.metadata import entry_points  # a fifth of a worker's imports, and most handlers are files

    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        points.setdefault(point.name, point)
    return points


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
        raise HandlerLoadError(
            f"the entry point {point.name} = {point.value} in the group {point.group}{package} cannot be loaded: "
            f"{summary(error)}; correct the package, or uninstall it"
        ) from error
