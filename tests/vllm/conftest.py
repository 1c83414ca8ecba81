"""The stub of vLLM in place of the real one, which no unit test needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

STUB = Path(__file__).parent / "stub"
NAMES = ("vllm", "msx_vllm.engine")


def _forget() -> None:
    for name in [name for name in sys.modules if name in NAMES or name.startswith(tuple(f"{one}." for one in NAMES))]:
        del sys.modules[name]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`import vllm` finds the stub."""
    _forget()
    monkeypatch.syspath_prepend(str(STUB))
    yield
    _forget()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker's folder, which is the current one; what a handler does to the environment is taken back."""
    monkeypatch.setattr("os.environ", dict(__import__("os").environ))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    return tmp_path
