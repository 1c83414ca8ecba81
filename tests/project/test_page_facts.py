"""Statements of pages about the code, where the code knows better: paths, lists, numbers, statuses."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.models.state import schema

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")  # pytest brings it

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FRONTEND = ROOT / "frontend" / "msx_frontend"
ABOUT_CODE = ["CONTRIBUTING.md", "docs/architecture.md", "docs/families.md"]
ABOUT_CODE += sorted(str(page.relative_to(ROOT)) for page in (DOCS / "internals").glob("*.md"))
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def paths() -> list[str]:
    """Paths of files and folders that are in the repository, each from its root."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    folders = {f"{folder}/" for file in files for folder in Path(file).parents}
    return [f"/{path}" for path in (*files, *folders)]


@pytest.mark.parametrize("page", ABOUT_CODE)
def test_each_path_of_the_code_that_a_page_names_is_there(page: str, paths: list[str]) -> None:
    text = _FENCE.sub("", (ROOT / page).read_text())
    named = {path for path in re.findall(r"`([\w./-]+(?:\.py|/))`", text) if "NAME" not in path}
    assert [path for path in sorted(named) if not any(one.endswith(f"/{path.lstrip('/')}") for one in paths)] == []


def floors() -> str:
    return (DOCS / "architecture.md").read_text().partition("## The floors of the server")[2].partition("```\n\n")[0]


def test_each_family_of_an_api_is_in_the_list_of_floors() -> None:
    found = re.search(r"^apis/(.*?):", floors(), re.MULTILINE | re.DOTALL)
    assert found is not None
    folders = {path.parent.name for path in (FRONTEND / "apis").glob("*/__init__.py")}
    assert {*found[1].split()} == folders


def test_the_floors_are_those_of_the_linter() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one["name"] == "the floors of the server")
    floor = {name.strip(): n for n, layer in enumerate(layers) for name in layer.split("|")}
    folders = {path.parent.name for path in FRONTEND.glob("*/__init__.py")}
    named = [name for name in re.findall(r"\b(\w+)/", floors()) if name in folders]
    assert {*named} == folders
    assert named == sorted(named, key=floor.__getitem__)


def test_the_number_of_the_states_schema() -> None:
    said = re.findall(r"`PRAGMA user_version`; today (\d+)", (DOCS / "versions.md").read_text())
    assert said == [str(len(schema.SCRIPTS))]


UNITS = {"": 1.0, "million": 1e6, "µs": 1e-6, "ms": 1e-3, "kB": 1e3, "GB": 1e9}
_PRODUCT = re.compile(r"([\d,.]+)(?: (million))? × ([\d.]+) (µs|ms|kB) = ([\d,.]+)(?: (GB|µs)\b)?")


def test_the_arithmetic_of_scale_is_right() -> None:
    found = _PRODUCT.findall((DOCS / "scale.md").read_text())
    assert len(found) > 4
    for count, many, each, unit, total, of in found:
        product = float(count.replace(",", "")) * UNITS[many] * float(each) * UNITS[unit]
        assert product == pytest.approx(float(total.replace(",", "")) * UNITS[of], rel=0.05), (count, each, total)
