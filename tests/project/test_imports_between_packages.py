"""Packages import each other's public names; examples and pages import only what is promised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent for path in ROOT.glob("*/msx_*/__init__.py"))
PROMISED = re.compile(
    r"msx_(sdk|client)\b(?!.*\._)|msx_llm\.models\.(config|hub|members|neutral)$|msx_frontend\.plugins\b|msx_reverse$"
)
"""Names of docs/sdk.md, docs/client.md, docs/families.md, docs/plugins.md; the last is a plugin that a page writes."""


def imported(source: str) -> Iterator[str]:
    """Full names: of modules, and of what is imported from them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_no_private_name_of_another_package_is_imported(package: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted(package.rglob("*.py"))
        for name in imported(path.read_text())
        if name.startswith("msx_") and not name.startswith(f"{package.name}.") and is_private(name)
    ]
    assert found == []


def samples() -> dict[str, str]:
    """Python that users copy: examples, templates, and the blocks of pages."""
    files = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "examples").rglob("*.py"))}
    for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        files |= {f"{page.relative_to(ROOT)} {number}": block for number, block in enumerate(blocks)}
    return files


def test_users_copy_imports_that_are_promised() -> None:
    found = []
    for name, source in samples().items():
        lines = re.findall(r"^\s*(?:from|import) msx_.*$", source, re.MULTILINE)
        modules = [re.sub(r"^\s*(?:from|import) ([\w.]+).*", r"\1", line) for line in lines]
        found += [f"{name}: {module}" for module in modules if not PROMISED.match(module)]
    assert found == []
