"""Checks that a model file tells which network it defines, by the worker's rules (`msx_core.mindspore.cells`), without
importing it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from msx_archiver.errors import PackError
from msx_archiver.python_files import check_python
from msx_core.model_options import ModelOptions
from msx_core.validation import wrong_value

_FACTORY = "create"


def check_network(model_file: Path, section: Any, option: str) -> None:
    """`section`: of model-config.yaml, `model:`. Raises PackError, which begins with `option`, where the worker would
    find no network, or several.

    What the source alone does not tell, such as whether an imported base class is a network, passes.
    """
    names = _Names(check_python(model_file))
    wanted = _options(section).class_name
    if wanted is not None:
        if not names.may_have(wanted):
            raise PackError(f"{option}: {model_file} has no class or function '{wanted}', which `model: class:` names.")
        return
    if not names.may_have(_FACTORY) and (len(names.cells) > 1 or not (names.cells or names.unknown)):
        found = ", ".join(names.cells) or "none"
        raise PackError(
            f"{option}: {model_file}: expected a function {_FACTORY}() or one nn.Cell class, found {found}: name one "
            f"as `model: {{class: …}}` in --config-file."
        )


def _options(section: Any) -> ModelOptions:
    """Raises PackError."""
    try:
        return msgspec.convert({} if section is None else section, ModelOptions)
    except msgspec.ValidationError as error:
        path, expected = wrong_value(error)
        raise PackError(f"--config-file: {f'model.{path}'.rstrip('.')}: {expected}.") from None


class _Names:
    """The names of a module's top level. `cells`: its classes that are certainly networks; `unknown`: those that may
    be."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(_top_level(tree.body))
        self._classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        self._others = {name for node in nodes for name in _bound(node)}
        states = {name: self._is_cell(name, ()) for name in self._classes}
        self.cells = [name for name, state in states.items() if state]
        self.unknown = "*" in self._others or any(state is None for state in states.values())

    def may_have(self, name: str) -> bool:
        return name in self._classes or not self._others.isdisjoint({name, "*"})

    def _is_cell(self, name: str, below: tuple[str, ...]) -> bool | None:
        """None where a base class is of another module."""
        states = [self._base(base, (*below, name)) for base in self._classes[name].bases]
        return True if True in states else None if None in states else False

    def _base(self, base: ast.expr, below: tuple[str, ...]) -> bool | None:
        name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
        if name == "Cell":
            return True
        if isinstance(base, ast.Name) and name in self._classes and name not in below:
            return self._is_cell(name, below)
        return False if name == "object" else None


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported, those in branches, too."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = (part for part in ast.walk(node) if isinstance(part, ast.stmt) and part is not node)
            yield from inner


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement may bind; `*` for any."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif not isinstance(node, ast.ClassDef):
        yield from (
            part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        )
