"""Nothing is pickled between processes: to read a pickle is to run the program in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("sdk", "archiver", "backend", "frontend", "compat")
PICKLING = {"_pickle", "cloudpickle", "dill", "joblib", "marshal", "multiprocessing", "pickle", "shelve"}
"""Modules that read pickles or the like, or have their messages pickled."""
ALLOWED = {
    ("frontend/msx_ray/driver/groups.py", "cloudpickle"): "the class of Ray's actor travels to the nodes "
    "in Ray's own messages; no request is in them",
}
"""Modules that import one, and why."""


def imported(source: str) -> Iterator[str]:
    """The names of the modules that are imported, and of what is imported from them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(alias.name for alias in node.names))


def pickling(source: str) -> set[str]:
    return {part for name in imported(source) for part in name.split(".")} & PICKLING


def test_an_import_is_found() -> None:
    for line in (
        "import pickle",
        "from pickle import loads",
        "from ray import cloudpickle",
        "import multiprocessing.dummy",
    ):
        assert pickling(f"def f():\n    {line}\n"), line
    assert pickling("import msgspec  # no pickle") == set()


def test_no_module_pickles() -> None:
    paths = [path.relative_to(ROOT) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = {(str(path), name) for path in paths for name in pickling((ROOT / path).read_text())}
    assert found == ALLOWED.keys()
