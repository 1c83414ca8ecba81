"""The modules that families of language models imported before the engine was a package of its own."""

from __future__ import annotations

import importlib
import sys

import pytest

from msx_llm.models import config, hub, members, neutral

OLD = "msx_backend.llm.models"


@pytest.fixture(autouse=True)
def not_imported() -> None:
    for name in [name for name in sys.modules if name.startswith("msx_backend.llm")]:
        del sys.modules[name]


@pytest.mark.parametrize("module", [config, hub, members, neutral])
def test_an_old_name_is_the_same_module(module: object) -> None:
    last = module.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"is now msx_llm\.models"):
        assert importlib.import_module(f"{OLD}.{last}") is module
