from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import msx_sdk

SDK = Path(msx_sdk.__file__).parents[1]
PAGE = (Path(__file__).parents[2] / "docs" / "sdk.md").read_text()
HEAVY = ("numpy", "mindspore", "starlette", "grpc", "yaml", "uvicorn", "PIL")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SDK).with_suffix("").parts).removesuffix(".__init__")


PUBLIC = {
    name: ast.parse(path.read_text())
    for path, name in ((path, name_of(path)) for path in sorted((SDK / "msx_sdk").rglob("*.py")))
    if "._" not in name
}
"""The modules that handler authors may import; some of them import MindSpore, so that they are only read here."""


def exported(module: ast.Module) -> list[str]:
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def test_the_page_says_of_each_name_how_stable_it_is() -> None:
    rows = re.findall(r"^\| `(msx_sdk[\w.]*)` \|.*\| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
    stated = {name: re.findall(r"`(\w+)`", f"{stable} {provisional}") for name, stable, provisional in rows}
    assert {name: sorted(names) for name, names in stated.items()} == {
        name: sorted(exported(module)) for name, module in PUBLIC.items()
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_classes_and_functions_of_a_public_module_are_promised_or_private(name: str) -> None:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    defined = [node.name for node in PUBLIC[name].body if isinstance(node, kinds)]
    assert [one for one in defined if one[0] != "_" and one not in exported(PUBLIC[name])] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_sorted(name: str) -> None:
    names = exported(PUBLIC[name])
    assert names == sorted(names, key=lambda one: (not one.isupper(), not one[0].isupper(), one))


def test_importing_the_sdk_is_cheap() -> None:
    code = f"import msx_sdk, msx_sdk.testing, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
