"""Imports a `servable_config.py`, in a worker or to look at it. MindSpore is not needed for that."""

import sys
from collections.abc import Iterable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from msx_core.errors import HandlerLoadError
from msx_core.servables.servable import CONFIG_NAME, SERVABLES, Servable

_MODULE = CONFIG_NAME.removesuffix(".py")


def load_servable(folder: Path, name: str) -> Servable:
    """Imports `{name}.servable_config` from a folder, which may have any name; it may import its neighbours, by that
    package, relatively, or as top-level modules.

    Raises HandlerLoadError, in MindSpore Serving's words for what the import raised and for a file without methods.
    """
    folder = folder.resolve()
    if not (folder / CONFIG_NAME).is_file():
        raise HandlerLoadError(f"the servable '{name}' has no {CONFIG_NAME} in its folder")
    servable = SERVABLES[folder] = Servable(name, folder)
    try:
        _import(folder, name)
    except Exception as error:
        raise HandlerLoadError(f"import {name}.{_MODULE} failed, {error}") from error
    if not servable.methods:
        raise HandlerLoadError(
            "Raise failed: There is no method registered for servable"
            if servable.models
            else f"Servable '{name}' has not been registered"
        )
    return servable


def _import(folder: Path, name: str) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    package = _package(folder, name)
    full = f"{package}.{_MODULE}"
    sys.modules.pop(full, None)
    spec = spec_from_file_location(full, folder / CONFIG_NAME)
    if spec is None or spec.loader is None:
        raise ImportError(f"{CONFIG_NAME} cannot be imported")
    sys.modules[full] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[full]
        raise


def _package(folder: Path, name: str) -> str:
    """The package that stands for the folder: by the servable's name, unless another module has that name."""
    if _is_taken(name):
        name = f"servable_{name.replace('.', '_')}"
    for known in [known for known in sys.modules if known.startswith(f"{name}.")]:
        del sys.modules[known]
    init = folder / "__init__.py"
    spec = spec_from_file_location(name, init, submodule_search_locations=[str(folder)]) if init.is_file() else None
    package = ModuleType(name) if spec is None else module_from_spec(spec)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(package)
    return name


def _is_taken(name: str) -> bool:
    """Whether it is the name of something else that can be imported, now or later."""
    if "." in name or name in sys.stdlib_module_names:
        return True
    if (known := sys.modules.get(name)) is not None:
        return not _holds_a_servable(getattr(known, "__path__", ()))
    spec = find_spec(name)
    if spec is None or spec.origin is None:  # a folder that happens to be on the path has no origin
        return False
    return not _holds_a_servable(spec.submodule_search_locations or ())


def _holds_a_servable(paths: Iterable[str]) -> bool:
    return any((Path(path) / CONFIG_NAME).is_file() for path in paths)
