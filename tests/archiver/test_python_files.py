from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from msx_archiver.errors import PackError
from msx_archiver.python_files import (
    HandlerFile,
    check_module,
    check_python,
    find_handler,
    find_library,
    warnings_of_names,
)
from tests.archiver.conftest import HANDLER

InFolder = Callable[..., Path]


@pytest.mark.parametrize(
    ("handler", "name"),
    [("h.py", "h.py"), ("h", "h"), ("h:handle", "h:handle"), ("h.py:handle", "h:handle"), ("./h.py", "h.py")],
)
def test_files(in_folder: InFolder, handler: str, name: str) -> None:
    in_folder(h__py=HANDLER)
    assert find_handler(handler) == HandlerFile(name, Path("h.py"))


def test_absolute_path(in_folder: InFolder) -> None:
    file = in_folder(h__py=HANDLER) / "h.py"
    assert find_handler(f"{file}:handle") == HandlerFile("h:handle", file)


@pytest.mark.parametrize("name", ["mindir", "image_classifier", "base_handler", "vllm_handler", "mindir:Handler"])
def test_built_in(in_folder: InFolder, name: str) -> None:
    in_folder()
    assert find_handler(name) == HandlerFile(name)


def test_own_file_goes_before_a_built_in(in_folder: InFolder) -> None:
    in_folder(mindir__py=HANDLER)
    assert find_handler("mindir").file == Path("mindir.py")


@pytest.mark.parametrize("name", ["gone", "gone.py", "gone:handle", "", ":", "data.txt"])
def test_neither_lists_the_built_ins(in_folder: InFolder, name: str) -> None:
    in_folder(data__txt="text")
    with pytest.raises(PackError, match=r"neither a Python file nor .*base_handler.*image_classifier.*mindir"):
        find_handler(name)


@pytest.mark.parametrize(
    "source",
    [
        "def work(d, c): ...",
        "async def work(d, c): ...",
        "class work: ...",
        "work = print",
        "from os import getcwd as work",
        "if True:\n    from m import *",
    ],
)
def test_function_may_be_defined_in_any_way(in_folder: InFolder, source: str) -> None:
    in_folder(h__py=source)
    assert find_handler("h:work").name == "h:work"


@pytest.mark.parametrize("handler", ["h", "h:Class"])
def test_a_handler_of_runtime_lsp_is_a_library(in_folder: InFolder, handler: str) -> None:
    in_folder(h__so="a library")
    assert find_library(handler) == HandlerFile(handler, Path("h.so"))


def test_a_handler_that_torchserves_runtime_lsp_brings_needs_no_library(in_folder: InFolder) -> None:
    in_folder()
    assert find_library("TorchScriptHandler") == HandlerFile("TorchScriptHandler")
    with pytest.raises(PackError, match=r"'gone' of runtime LSP is neither in gone\.so nor one of BaseHandler"):
        find_library("gone")


def test_function_that_is_not_there(in_folder: InFolder) -> None:
    in_folder(h__py=HANDLER)
    with pytest.raises(PackError, match="does not define 'work'"):
        find_handler("h.py:work")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\ndef (", "h.py, line 2"),
        ("return 1", "h.py, line 1: 'return' outside function"),
        ("\0", "h.py"),
        (b"\xff\xfe", "h.py"),
        ("(" * 5000, "h.py"),
    ],
)
def test_bad_source(in_folder: InFolder, source: str | bytes, words: str) -> None:
    in_folder(h__py=source)
    with pytest.raises(PackError, match=words.replace(".", r"\.")):
        check_python(Path("h.py"))


def test_warnings_of_the_compiler_are_not_errors(in_folder: InFolder) -> None:
    in_folder(h__py="x = '\\d'\nassert (x, 'always true')")
    check_python(Path("h.py"))


@pytest.mark.parametrize(
    ("name", "hidden"),
    [("random", "Python's module random"), ("queue", "Python's module queue"), ("numpy", "the package numpy")],
)
def test_a_name_that_hides_another_module(in_folder: InFolder, name: str, hidden: str) -> None:
    file = in_folder() / f"{name}.py"
    file.write_bytes(HANDLER)
    with pytest.raises(PackError) as refused:
        check_module(file, "--handler")
    words = f"{name}.py has the name of {hidden}, and hides it from all that import that: rename the file"
    assert str(refused.value) == f"--handler: {words}."


@pytest.mark.parametrize(
    "source", ["import torch", "def load():\n    from torch.nn import Module", "import a, torch.nn"]
)
def test_a_file_that_imports_its_own_name(in_folder: InFolder, source: str) -> None:
    in_folder(torch__py=source)
    with pytest.raises(
        PackError, match=r"torch\.py imports torch, which is this file itself in the archive: rename it"
    ):
        check_module(Path("torch.py"), "--model-file")


@pytest.mark.parametrize("source", ["import torch", "from . import h", "from .h import x", "import h2"])
def test_a_name_of_its_own(in_folder: InFolder, source: str) -> None:
    in_folder(h__py=source)
    check_module(Path("h.py"), "--handler")


def test_other_files_that_hide_a_module_are_warned_of() -> None:
    assert warnings_of_names(["types.py", "sub/types.py", "types.txt", "types", "words.py"], "--extra-files") == [
        "--extra-files: types.py has the name of Python's module types, and hides it from all that import that: rename "
        "the file."
    ]
