"""The network that a `--model-file` defines."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from msx_core.errors import HandlerLoadError
from msx_core.handler_modules import imported
from msx_core.mindspore.parallel import Parallel
from msx_core.model_options import ModelOptions


def create_cell(path: Path, options: ModelOptions, parallel: Parallel | None = None) -> Any:
    """Build the network: the class or function named by `class`, else `create`, else the file's one `nn.Cell`.

    `parallel` is given to one that has a parameter of this name. Raises HandlerLoadError when there is none, or more
    than one.
    """
    module = import_source(path)
    factory = _factory(module, path, options.class_name)
    positional, named = ([], dict(options.args)) if isinstance(options.args, dict) else (options.args, {})
    signature = inspect.signature(factory)
    if parallel is not None and "parallel" in signature.parameters:
        named.setdefault("parallel", parallel)
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        remedy = "give its arguments as `model: {args: …}` in model-config.yaml"
        raise HandlerLoadError(f"{path.name}: {factory.__name__}: {error}; {remedy}") from None
    return factory(*positional, **named)


def import_source(path: Path) -> ModuleType:
    """Import a Python file; its folder comes first on `sys.path`, so that it finds the files beside it."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    return imported(path)


def _factory(module: ModuleType, path: Path, name: str | None) -> Callable[..., Any]:
    if name is not None:
        if not callable(getattr(module, name, None)):
            raise HandlerLoadError(f"{path.name} has no class or function {name!r}, which `model: class:` names")
        named: Callable[..., Any] = getattr(module, name)
        return named
    if callable(create := getattr(module, "create", None)):
        return create  # type: ignore[no-any-return]
    return _only_cell(module, path)


def _only_cell(module: ModuleType, path: Path) -> Callable[..., Any]:
    from mindspore import nn

    own = [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]
    cells = list(dict.fromkeys(value for value in own if issubclass(value, nn.Cell)))
    if len(cells) != 1:
        found = ", ".join(cell.__name__ for cell in cells) or "none"
        raise HandlerLoadError(
            f"{path.name}: expected a function create() or one nn.Cell class, found {found}; "
            f"name one as `model: {{class: …}}` in model-config.yaml"
        )
    only: Callable[..., Any] = cells[0]
    return only
