"""Reads statements about groups from a handler's source. It is not imported: it may need packages that are not
installed here."""

import ast
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from msx_archiver.python_files import ENTRY_POINTS, HandlerFile

PARALLEL_TYPES = "parallel_types"
PACKED_WITH = "packed_with"
_KNOWN_BASES = ("Handler", "object")


def installed(handler: HandlerFile) -> str | None:
    """The module of a handler in an installed package, MSX's own among them."""
    if handler.file is not None:
        return None
    points = list(entry_points(group=ENTRY_POINTS, name=handler.name))
    return points[0].module if points else None


def source_of(handler: HandlerFile) -> ast.Module | None:
    """The source; None if it cannot be read."""
    file = handler.file or _file_of(installed(handler))
    return ast.parse(file.read_bytes()) if file is not None and file.suffix == ".py" else None


def stated(tree: ast.Module, handler: str, name: str) -> tuple[str, ...] | None:
    """The literal that its class, or the module of a function, assigns to `name`; None without one."""
    for body in (*(node.body for node in _classes(tree, handler)), tree.body):
        for node in body:
            if (value := _assigned(node, name)) is not None:
                return _texts(value)
    return None


def cannot_be_led(tree: ast.Module, handler: str) -> bool:
    """Whether it has an `async def handle` without `follow`, as far as the source shows; inherited methods are
    unknown."""
    wanted = handler.partition(":")[2] or "handle"
    functions = _functions(tree.body)
    if wanted in functions:
        return isinstance(functions[wanted], ast.AsyncFunctionDef) and "follow" not in functions
    classes = _classes(tree, handler)
    if len(classes) != 1 or not all(_is_known(base) for base in classes[0].bases):
        return False
    methods = _functions(classes[0].body)
    return isinstance(methods.get("handle"), ast.AsyncFunctionDef) and "follow" not in methods


def _file_of(module: str | None) -> Path | None:
    try:
        spec = find_spec(module) if module else None
    except (ImportError, ValueError):  # a package around it that cannot be imported here
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _classes(tree: ast.Module, handler: str) -> list[ast.ClassDef]:
    """The class that is named after the colon, or all classes."""
    wanted = handler.partition(":")[2]
    return [node for node in tree.body if isinstance(node, ast.ClassDef) and wanted in ("", node.name)]


def _functions(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    return {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def _is_known(base: ast.expr) -> bool:
    return isinstance(base, ast.Name) and base.id in _KNOWN_BASES


def _assigned(node: ast.stmt, name: str) -> ast.expr | None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    if not any(isinstance(target, ast.Name) and target.id == name for target in targets):
        return None
    return node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None


def _texts(node: ast.expr) -> tuple[str, ...] | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return tuple(map(str, value)) if isinstance(value, (tuple, list)) else None
