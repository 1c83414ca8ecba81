"""Whether the batches of an archive's handler overlap, as far as its files tell without importing them."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msx_archiver.archive import Archive
from msx_archiver.outline import Outlines, Source, SourceUnknownError, has_own_reason
from msx_core.config import ModelConfig
from msx_core.entry_points import found, load_all
from msx_core.errors import HandlerLoadError
from msx_core.handler_modules import ENTRY_POINTS
from msx_core.manifest import Manifest
from msx_core.overlap import sequential_reason
from msx_core.plugins import HANDLER_PACKAGES, HandlerPackage
from msx_core.resolve import resolve_object
from msx_core.resolved_handler import ResolvedHandler


class KnownOverlap(NamedTuple):
    """`sequential` is as in `sequential_reason`. `may_change`: its handler may find a reason as it is loaded."""

    sequential: str
    may_change: bool


def known_overlap(archive: Archive[Manifest], handler: str, config: ModelConfig, envelope: str = "") -> KnownOverlap:
    """Raises SourceUnknownError."""
    resolved = _resolved(_SourceFiles(archive), handler, archive.manifest.to_dict())
    reason = sequential_reason(resolved, config, world_size=config.layout.ranks, envelope=envelope)
    return KnownOverlap(reason, has_own_reason(resolved.owner))


def _resolved(files: _SourceFiles, handler: str, manifest: Mapping[str, Any]) -> ResolvedHandler:
    """Resolve outlines as a worker resolves modules. Raises SourceUnknownError."""
    try:
        packages: list[HandlerPackage] = [make() for make in load_all(HANDLER_PACKAGES)]
        for package in packages:
            handler = package.handler_for(handler, manifest)
        location, _, attribute = handler.partition(":")
        module = Outlines(files.find).module(_module_of(files, location, [package.name for package in packages]))
        return resolve_object(getattr(module, attribute) if hasattr(module, attribute) else module)
    except HandlerLoadError as error:
        raise SourceUnknownError(str(error)) from None
    except RecursionError:
        raise SourceUnknownError("its source is nested too deeply") from None


def _module_of(files: _SourceFiles, location: str, packages: list[str]) -> str:
    """The worker's order: a file of the archive, a name that an installed package brings, a module."""
    inside = location.removesuffix(".py").replace("/", ".")
    for name in (inside, inside.rpartition(".")[2]):
        if files.has(name):
            return name
    if (point := found(ENTRY_POINTS).get(location)) is not None:
        return point.module
    modules = (location, *(f"{package}.{location}" for package in packages))
    return next((name for name in modules if files.find(name) is not None), location)


class _SourceFiles:
    """Sources of the archive, and of packages that are installed here."""

    def __init__(self, archive: Archive[Manifest]) -> None:
        self._archive = archive
        self._paths = {member.path for member in archive.files}

    def has(self, module: str) -> bool:
        return any(path in self._paths for path in _paths(module))

    def find(self, module: str) -> Source | None:
        for path in _paths(module):
            if path in self._paths:
                return _source(self._archive.read(path), module, path)
        folders = _folders_around(module)
        files = (folder / path for folder in folders for path in _paths(module.rpartition(".")[2]))
        file = next((file for file in files if file.is_file()), None)
        return None if file is None else _source(file.read_bytes(), module, file.name)


def _paths(module: str) -> tuple[str, str]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"


def _folders_around(module: str) -> list[Path]:
    """Folders that an installed module may lie in. Of its packages nothing is imported."""
    top, *between = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    inside = [Path(folder) for folder in spec.submodule_search_locations or ()]
    if not between:
        return [folder.parent for folder in inside] or [Path(spec.origin or "").parent]
    return [folder.joinpath(*between[:-1]) for folder in inside]


def _source(data: bytes, module: str, path: str) -> Source:
    """Raises SourceUnknownError."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SourceUnknownError(f"{path} is not Python that can be read ({type(error).__name__})") from None
    return Source(tree, module if path.endswith("__init__.py") else module.rpartition(".")[0])
