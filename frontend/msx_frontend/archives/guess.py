"""Recognize what kind of model a path is, to serve it without packing."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from msx_archiver.servable import YAML
from msx_core.file_kinds import GGUF
from msx_core.mindir import answers_beside
from msx_core.start_errors import StartError

MINDIR, PYTHON = ".mindir", ".py"
SERVABLE = "servable_config.py"
MANIFEST = "MAR-INF"
HANDLER = "handler.py"
MOST_FILES = 10_000
"""Most files of a folder: one with more is not a model."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


class GuessError(StartError):
    """Nobody can tell how the path is to be served; the message says what would be understood."""


@dataclass(frozen=True)
class Guess:
    """`handler`: of the manifest; `files`: by their names in the model's folder; `said`: what was guessed, in words."""

    name: str
    handler: str
    files: dict[str, Path]
    said: str
    serialized: str | None = None
    model_file: str | None = None
    config: bool = False
    """`files` has a model-config.yaml."""


def is_unpacked(path: Path) -> bool:
    """Whether it is served as it is: what torchserve's users name (archives, and their folders) is not."""
    if path.is_file():
        return path.suffix in (MINDIR, PYTHON, GGUF)
    return path.is_dir() and not (path / MANIFEST).exists()


def guess(path: Path, weights: Path | None = None) -> Guess:
    """Recognize a model or handler in a file or folder; folders of Hugging Face and servables are checked elsewhere.

    `weights` are those of a network, or of a handler, in a Python file. Raises GuessError.
    """
    if weights is not None:
        return _of_weights(path, weights)
    if path.suffix == MINDIR and path.is_file():
        return _of_mindir(path)
    return _of_handler(path) if path.is_file() else _of_folder(path)


def name_of(path: Path) -> str:
    """The file's name without its ending, or the folder's, as a model may be called."""
    stem = path.resolve().stem if path.is_file() else path.resolve().name
    return _NOT_IN_NAMES.sub("-", stem).strip("-.") or "model"


def _of_mindir(path: Path) -> Guess:
    files, config = _with_config(path.parent, {path.name: path})
    weights = f"{path.stem.removesuffix('_graph')}_variables"
    files |= {f"{weights}/{one.name}": one for one in _visible(path.parent / weights, "*") if one.is_file()}
    if (answers := answers_beside(path)).is_file():
        files[answers.name] = answers
    return Guess(name_of(path), "mindir", files, f"a MindIR model{_and(config)}", serialized=path.name, config=config)


def _of_handler(path: Path) -> Guess:
    files, config = _with_config(path.parent, {one.name: one for one in _modules(path)})
    others = ", ".join(name for name in files if name not in (path.name, YAML))
    imported = f", with {others} beside it, which it imports" if others else ""
    return Guess(name_of(path), path.name, files, f"a handler{imported}{_and(config)}", config=config)


def _of_weights(path: Path, weights: Path) -> Guess:
    if path.suffix != PYTHON or not path.is_file():
        raise GuessError(
            f"--weights {weights}: only for the Python file of a network or a handler, which {path} is not."
        )
    if not weights.is_file():
        raise GuessError(f"--weights {weights}: is not a file.")
    found = _of_handler(path)
    files = {**found.files, weights.name: weights}
    if _is_handler(path):
        return replace(found, files=files, serialized=weights.name, said=f"{found.said}, and {weights.name}")
    said = f"a network with the checkpoint {weights.name}{_and(found.config)}"
    return replace(found, handler="checkpoint", files=files, serialized=weights.name, model_file=path.name, said=said)


def _is_handler(path: Path) -> bool:
    """Whether the file defines a function or a method `handle`, or a class of a base with a name such as Handler."""
    tree = _parsed(path)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "handle":
            return True
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Handler") for base in node.bases):
            return True
    return False


def _of_folder(path: Path) -> Guess:
    files = dict(_all_files(path))
    handler, mindirs = _handler_in(path, files), mindirs_in(path)
    if handler is not None:
        said = f"a folder with the handler {handler}"
        serialized = mindirs[0].name if len(mindirs) == 1 else None
    elif len(mindirs) == 1:
        handler, serialized = "mindir", mindirs[0].name
        said = f"a folder with the MindIR model {serialized}"
    else:
        raise GuessError(
            f"{path} cannot be served: it has neither {HANDLER}, nor exactly one *.py or one *.mindir file. Name the "
            f"file itself, or pack the folder with msx-archiver."
        )
    config = YAML in files
    return Guess(name_of(path), handler, files, f"{said}{_and(config)}", serialized=serialized, config=config)


def _handler_in(path: Path, files: dict[str, Path]) -> str | None:
    if HANDLER in files:
        return HANDLER
    own = [name for name in files if name.endswith(PYTHON) and "/" not in name]
    return own[0] if len(own) == 1 else None


def mindirs_in(folder: Path) -> list[Path]:
    return _visible(folder, f"*{MINDIR}")


def _visible(folder: Path, pattern: str) -> list[Path]:
    """Find files that are not hidden: a Mac leaves `._net.mindir` beside `net.mindir`."""
    return sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))


def _with_config(folder: Path, files: dict[str, Path]) -> tuple[dict[str, Path], bool]:
    config = folder / YAML
    return ({**files, YAML: config}, True) if config.is_file() else (files, False)


def _and(config: bool) -> str:
    return f", and the {YAML} beside it" if config else ""


def _all_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Files by their paths in the folder, without hidden ones and caches. Raises GuessError for too many."""
    found = 0
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if any(part.startswith(".") or part == "__pycache__" for part in inside.parts) or not path.is_file():
            continue
        if (found := found + 1) > MOST_FILES:
            raise GuessError(f"{root} has more than {MOST_FILES:,} files: name the folder of one model.")
        yield inside.as_posix(), path


def _modules(path: Path, seen: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """The file, and those beside it that it imports, and so on."""
    if path in seen:
        return seen
    seen = (*seen, path)
    for name in _imported(path):
        if (beside := path.parent / f"{name}{PYTHON}").is_file():
            seen = _modules(beside, seen)
    return seen


def _parsed(path: Path) -> ast.Module | None:
    """None for a file that Python cannot read: the worker says what is wrong with it."""
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return None


def _imported(path: Path) -> Iterator[str]:
    tree = _parsed(path)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
