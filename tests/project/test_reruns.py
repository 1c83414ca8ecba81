"""Which tests are run once more when they fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAILS_ONCE = """
import pytest

seen = []


@pytest.mark.collectives
def test_of_several_ranks():
    seen.append("ranks")
    assert seen.count("ranks") > 1


def test_of_one():
    seen.append("one")
    assert seen.count("one") > 1
"""
SETTINGS = "[pytest]\nmarkers =\n    collectives: as in pyproject.toml\n"


def test_only_tests_of_mindspores_collectives(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems\n")
    (tmp_path / "test_flaky.py").write_text(FAILS_ONCE)
    (tmp_path / "pytest.ini").write_text(SETTINGS + f"pythonpath = {ROOT}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.rstrip().splitlines()[-1].startswith("1 failed, 1 passed, 1 rerun"), done.stdout
    assert "FAILED test_flaky.py::test_of_one" in done.stdout


def test_scripts_run_nothing_again() -> None:
    for name in ("test", "test-all"):
        assert "--reruns" not in (ROOT / "scripts" / name).read_text()
