"""Finds handlers, and checks that Python files compile, before they are packed."""

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from msx_archiver.errors import PackError
from msx_core.module_names import hides

ENTRY_POINTS = "msx.handlers"
TORCHSERVE_HANDLERS = (
    "base_handler",
    "dali_image_classifier",
    "image_classifier",
    "image_segmenter",
    "object_detector",
    "text_classifier",
    "trt_llm_handler",
    "vllm_handler",
)


_LSP_HANDLERS = ("BaseHandler", "TorchScriptHandler")


@dataclass(frozen=True)
class HandlerFile:
    """The handler that `--handler` names: its name in the manifest, and the file to pack unless it is built in."""

    name: str
    file: Path | None = None


def find_handler(handler: str) -> HandlerFile:
    """Accepts `h.py`, `h`, `h.py:function`, `h:function`, or the name of an installed handler. Raises PackError."""
    location, function = _split(handler)
    file = _file_of(location)
    if file is None:
        return _installed(handler, location)
    tree = check_python(file)
    if function and not _defines(tree, function):
        raise PackError(f"Handler file {file} does not define '{function}', which --handler {handler} names.")
    # TorchServe knows `h.py` and `h:function`, not `h.py:function`.
    return HandlerFile(f"{file.stem}:{function}" if function else Path(location).name, file)


def find_library(handler: str) -> HandlerFile:
    """Find the library of a handler of the runtime LSP: `h` and `h:Class` are in `h.so`. Raises PackError."""
    location = _split(handler)[0]
    file = Path(f"{location}.so")
    if location in _LSP_HANDLERS:
        return HandlerFile(handler)
    if not file.is_file():
        raise PackError(
            f"Handler '{handler}' of runtime LSP is neither in {file} nor one of {', '.join(_LSP_HANDLERS)}."
        )
    return HandlerFile(Path(handler).name, file)


def check_python(file: Path) -> ast.Module:
    """Parses and compiles a Python file; raises PackError with the line of a syntax error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read_bytes(), str(file))
            compile(tree, str(file), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise PackError(f"{file}, line {error.lineno}: {error.msg}. Correct it before packing.") from None
    except (ValueError, RecursionError) as error:
        raise PackError(f"{file} is not Python source: {error}.") from None
    return tree


def check_module(file: Path, option: str) -> None:
    """As `check_python`; also refuses a name by which others are imported, and a file that imports its own name, which
    another module was meant by."""
    tree = check_python(file)
    if hiding := hides(file.name):
        raise PackError(f"{option}: {hiding}.")
    if file.stem in _imported(tree):
        raise PackError(f"{option}: {file} imports {file.stem}, which is this file itself in the archive: rename it.")


def warnings_of_names(paths: Iterable[str], option: str) -> list[str]:
    """A warning for each file at the archive's root that hides a module which others import."""
    return [f"{option}: {hiding}." for hiding in map(hides, paths) if hiding]


def _imported(tree: ast.Module) -> set[str]:
    """The first parts of the names that it imports."""
    nodes = list(ast.walk(tree))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    members = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.partition(".")[0] for name in plain | members}


def _split(handler: str) -> tuple[str, str]:
    location, _, function = handler.rpartition(":")
    return (location, function) if location and function.isidentifier() else (handler, "")


def _file_of(location: str) -> Path | None:
    file = Path(location if location.endswith(".py") else f"{location}.py")
    return file if file.is_file() else None


def _installed(handler: str, location: str) -> HandlerFile:
    ours = {point.name for point in entry_points(group=ENTRY_POINTS)}
    if location in ours or location in TORCHSERVE_HANDLERS:
        return HandlerFile(handler)
    known = ", ".join(sorted(ours.union(TORCHSERVE_HANDLERS)))
    raise PackError(f"Handler '{handler}' is neither a Python file nor one of the built-in handlers: {known}.")


def _defines(tree: ast.Module, name: str) -> bool:
    """Whether the module's top level may define `name`; conditional and starred imports count as definitions."""
    return any(name in _names(node) for node in ast.walk(tree)) or any(
        alias.name == "*" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    )


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name for alias in node.names]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []
