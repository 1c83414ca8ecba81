"""Coverage by package beside the floor that is committed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")  # pytest brings it
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_floor", ROOT / "scripts" / "_coverage_floor.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_floor_has_every_measured_package(script: ModuleType) -> None:
    least = script.read_floor(script.FLOOR.read_text())
    assert [*least] == [*script.PACKAGES]
    assert all(50 < percent <= 100 for percent in least.values())


def test_the_packages_are_those_that_are_measured(script: ModuleType) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["run"]
    assert [*script.PACKAGES] == settings["source_pkgs"]
    assert settings["branch"]
    assert "subprocess" in settings["patch"]


def test_a_package_below_its_floor_is_named_with_both_figures(script: ModuleType) -> None:
    found = script.losses({"msx_sdk": 89.94, "msx_backend": 80.0}, {"msx_sdk": 90.0, "msx_backend": 80.0})
    assert len(found) == 1
    assert found[0].startswith("msx_sdk: coverage is 89.94 %, and scripts/coverage-floor asks for 90.0 %: add tests")


def test_a_package_that_was_not_measured_is_below_its_floor(script: ModuleType) -> None:
    assert len(script.losses({}, {"msx_sdk": 1.0})) == 1


def test_what_is_written_is_met_by_the_same_run(script: ModuleType) -> None:
    measured = {"msx_sdk": 89.97, "msx_backend": 100.0}
    assert script.floor_text(measured) == "msx_sdk 89.9\nmsx_backend 100.0\n"
    assert script.losses(measured, script.read_floor(script.floor_text(measured))) == []


def test_the_report_has_a_line_for_each_package(script: ModuleType) -> None:
    lines = script.report({"msx_sdk": 89.97, "msx_backend": 100.0}, {"msx_sdk": 89.9}).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["msx_sdk", "89.97", "%", "floor", "89.9", "%"],
        ["msx_backend", "100.00", "%"],
    ]
