"""MindSpore writes into the current folder, and uses what Python has deprecated."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")


@pytest.fixture(autouse=True)
def _mindspore_manners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"mindspore\.")
        yield
