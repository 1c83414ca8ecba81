"""Modules that run in a worker's interpreter stand in one table."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from msx_frontend import worker_modules

NAMES = [value for name, value in vars(worker_modules).items() if name.isupper()]
SOURCES = Path(worker_modules.__file__).parent


@pytest.mark.parametrize("name", NAMES)
def test_each_is_there(name: str) -> None:
    assert find_spec(name) is not None


def named(source: str) -> list[str]:
    """Constants that name a module of a package that the server does not import."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and text.startswith(("msx_backend.", "msx_llm."))]


def test_no_other_module_of_the_server_names_one() -> None:
    found = {path.name: named(path.read_text()) for path in sorted(SOURCES.rglob("*.py"))}
    assert {name: names for name, names in found.items() if names and name != "worker_modules.py"} == {}
