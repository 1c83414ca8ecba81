"""docs/from-mindspore-serving.md says what to write for names that MindSpore 2, Pillow and NumPy have removed."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

PAGE = (Path(__file__).parents[3] / "docs" / "from-mindspore-serving.md").read_text()
SECTION = PAGE.partition("\n## Old servables\n")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", SECTION, re.MULTILINE)
IMPORTS = [row for row in ROWS if "import" in row[0]]
EXPRESSIONS = [row for row in ROWS if "import" not in row[0]]
TRANSFORMS = re.findall(r"`(\w+)\(([^`]*)\)`", SECTION.rpartition("|\n")[2])
"""Names of transforms that the text mentions, and their arguments."""


def test_the_table_is_read() -> None:
    assert (len(IMPORTS), len(EXPRESSIONS)) == (4, 7)
    assert [name for name, _ in TRANSFORMS] == ["Decode", "Normalize", "ToTensor"]


@pytest.mark.parametrize(("there", "write"), IMPORTS)
def test_modules_of_mindspore(there: str, write: str) -> None:
    assert not _can_be_imported(there)
    assert _can_be_imported(write)


def test_a_module_that_is_one_file_is_found() -> None:
    assert _can_be_imported("from mindspore.dataset.vision.transforms import Decode")


@pytest.mark.parametrize(("name", "arguments"), TRANSFORMS)
def test_arguments_of_transforms(name: str, arguments: str) -> None:
    tree = ast.parse((_mindspore() / "dataset" / "vision" / "transforms.py").read_text())
    made = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    first = next(one for one in made.body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
    assert set(re.findall(r"(\w+)=", arguments)) <= {one.arg for one in first.args.args}


@pytest.mark.parametrize(("there", "write"), EXPRESSIONS)
def test_names_of_pillow_and_numpy(there: str, write: str) -> None:
    draw, font = ImageDraw.Draw(Image.new("L", (9, 9))), ImageFont.load_default()
    names: dict[str, Any] = {"Image": Image, "draw": draw, "font": font, "np": np, "text": "a"}
    with pytest.raises(AttributeError):
        eval(there, names)
    assert eval(write, names) is not None


def _can_be_imported(line: str) -> bool:
    """Whether the module is among MindSpore's files and gives the names: to import it would take seconds."""
    (statement,) = ast.parse(line).body
    assert isinstance(statement, ast.Import | ast.ImportFrom)
    names = [one.name for one in statement.names]
    module = statement.module if isinstance(statement, ast.ImportFrom) else names.pop()
    assert module is not None
    path = _mindspore().joinpath(*module.split(".")[1:])
    files = [file for file in (path / "__init__.py", path.with_suffix(".py")) if file.exists()]
    return bool(files) and set(names) <= _defined(files[0])


def _defined(file: Path) -> set[str]:
    """Names of the module's classes, and those that it imports from others."""
    body = ast.parse(file.read_text()).body
    imported = {name.name for one in body if isinstance(one, ast.ImportFrom) for name in one.names}
    return imported | {one.name for one in body if isinstance(one, ast.ClassDef)}


def _mindspore() -> Path:
    spec = find_spec("mindspore")
    if spec is None or spec.origin is None:
        pytest.skip("MindSpore is not installed")
    return Path(spec.origin).parent
