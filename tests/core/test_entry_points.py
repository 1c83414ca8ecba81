"""Entry points of all our groups are read together, and again where Python's path has changed."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from msx_core import entry_points
from tests.plugins import install_module


def test_all_groups_are_found_by_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = list[int](), importlib.metadata.entry_points

    def counted() -> Any:
        looks.append(1)
        return look()

    monkeypatch.setattr(importlib.metadata, "entry_points", counted)
    install_module(tmp_path, "mine", "", apps={"a": "mine:a"}, handlers={"h": "mine:h"})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert entry_points.found("msx.apps")["a"].value == "mine:a"
    assert {"h", "mindir"} <= entry_points.found("msx.handlers").keys()
    assert entry_points.names("msx.nothing") == []
    assert len(looks) == 1


def test_the_first_of_a_name_on_the_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("second", "first"):
        install_module(tmp_path / folder, folder, "", apps={"it": f"{folder}:app"})
        monkeypatch.syspath_prepend(str(tmp_path / folder))
        assert entry_points.found("msx.apps")["it"].value == f"{folder}:app"
