"""Finds the module of a handler: in the archive, by an entry point, or on Python's path."""

import importlib
import importlib.util
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from msx_core.entry_points import found
from msx_core.errors import HandlerLoadError
from msx_core.failures import summary
from msx_core.module_names import hides

ENTRY_POINTS = "msx.handlers"

log = logging.getLogger("msx.worker")


def from_archive(location: str, model_dir: Path) -> ModuleType | None:
    path = _file_of(location, model_dir)
    if path is None:
        return None
    if path.parent != model_dir:
        prefer_on_path(str(path.parent))
        prefer_on_path(str(model_dir))
    return imported(path)


def imported(path: Path) -> ModuleType:
    """Import a Python file as the module of its name. Raises HandlerLoadError for a file that is not Python, and for
    one that fails and has the name of another module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise HandlerLoadError(f"{path.name}: handlers and model files must be Python source and end with .py")
    module = importlib.util.module_from_spec(spec)
    before, hiding = sys.modules.get(path.stem), hides(path.name)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        _put_back(path.stem, before)
        if hiding and isinstance(error, Exception):
            raise HandlerLoadError(f"{hiding}; importing it failed: {summary(error)}") from error
        raise
    if hiding:
        log.warning("%s.", hiding)
    return module


def _put_back(name: str, before: ModuleType | None) -> None:
    sys.modules.pop(name, None)
    if before is not None:
        sys.modules[name] = before


def _file_of(location: str, model_dir: Path) -> Path | None:
    """Searches inside the archive only. For a path that leads outside or does not exist, TorchServe's workers use the
    base name."""
    name = location if location.endswith(".py") else f"{location}.py"
    inside = [] if Path(name).is_absolute() or ".." in Path(name).parts else [model_dir / name]
    return next((path for path in [*inside, model_dir / Path(name).name] if path.is_file()), None)


def prefer_on_path(folder: str) -> None:
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


def from_entry_point(location: str) -> Any:
    point = found(ENTRY_POINTS).get(location)
    return None if point is None else point.load()


def from_path(location: str) -> ModuleType | None:
    try:
        return importlib.import_module(location) if _looks_importable(location) else None
    except ModuleNotFoundError as error:
        if error.name and (location == error.name or location.startswith(f"{error.name}.")):
            return None
        raise


def _looks_importable(location: str) -> bool:
    return all(part.isidentifier() for part in location.split("."))
