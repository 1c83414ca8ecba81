"""scripts/import-graph, and what it says of MSX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLEAN = [
    "msx_core", "msx_sdk", "msx_archiver", "msx_torchserve", "msx_mindspore_serving",
    "msx_protocol", "msx_backend", "msx_llm", "msx_vllm", "msx_net", "msx_frontend", "msx_ray",
]  # fmt: skip
"""The packages of which it has nothing to say."""

CONFIGURATION = """
[tool.importlinter]
root_packages = ["house"]
[[tool.importlinter.contracts]]
name = "floors"
type = "layers"
containers = ["house"]
layers = ["attic", "bath | kitchen", "(cellar)"]
ignore_imports = ["house.cellar.coal -> house.attic.roof"]
"""


def import_graph(folder: Path, *packages: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "_import_graph.py"), *packages]
    return subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)


def house(folder: Path, **modules: str) -> subprocess.CompletedProcess[str]:
    """Check a package with these modules, `__` standing for a dot."""
    (folder / "pyproject.toml").write_text(CONFIGURATION)
    for name in ("", "attic", "bath", "kitchen", "cellar"):
        (folder / "house" / name).mkdir(exist_ok=True)
        (folder / "house" / name / "__init__.py").touch()
    for name, text in modules.items():
        (folder / "house" / f"{name.replace('__', '/')}.py").write_text(text)
    return import_graph(folder)


def test_imports_have_no_cycle_and_no_way_upwards() -> None:
    done = import_graph(ROOT, *CLEAN)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_cycles_count_imports_for_type_checkers(tmp_path: Path) -> None:
    checking = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.one\n"
    done = house(tmp_path, one="import house.two\n", two="from house import three\n", three=checking)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "house: 1 cycles, 0 pairs of folders that import each other, 0 imports upwards",
        "  cycles: 3 modules",
        "    house.one -> house.two, line 1",
        "    house.three -> house.one, line 3",
        "    house.two -> house.three, line 1",
    ]


def test_folders_that_import_each_other(tmp_path: Path) -> None:
    modules = {"attic__a": "import house.bath.b\n", "bath__b": "", "bath__c": "import house.attic.d\n", "attic__d": ""}
    done = house(tmp_path, **modules)
    assert done.returncode == 1
    assert (
        done.stdout.splitlines()[0] == "house: 0 cycles, 1 pairs of folders that import each other, 1 imports upwards"
    )
    assert "  pairs of folders that import each other: house.attic and house.bath" in done.stdout
    assert "  imports upwards: house.bath imports house.attic" in done.stdout


def test_imports_upwards_and_among_independent_neighbours(tmp_path: Path) -> None:
    done = house(
        tmp_path,
        cellar__coal="from house.attic import roof\n",
        attic__roof="",
        bath__tub="import house.kitchen.sink\n",
        kitchen__sink="import house.cellar\n",
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == [
        "  imports upwards: house.bath imports house.kitchen",
        "    house.bath.tub -> house.kitchen.sink, line 1",
        "  imports upwards: house.cellar imports house.attic",
        "    house.cellar.coal -> house.attic.roof, line 1",
    ]


def test_nothing_to_say(tmp_path: Path) -> None:
    done = house(tmp_path, attic__roof="import house.cellar\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_package_that_is_not_there(tmp_path: Path) -> None:
    house(tmp_path)
    done = import_graph(tmp_path, "garden")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "garden: not among the packages house\n"
