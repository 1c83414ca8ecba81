"""MindSpore writes into the current folder, and uses what Python has deprecated."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def _mindspore_manners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    yield
    os.chdir(folder)


@pytest.fixture(autouse=True)
def _mindspore_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"mindspore\.")
        yield
