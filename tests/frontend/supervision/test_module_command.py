"""Modules that run in an interpreter of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from msx_frontend.supervision.frontend_process import COMMAND
from msx_frontend.supervision.module_command import module_command
from msx_frontend.supervision.replacement import MODULE


@pytest.mark.parametrize("module", [COMMAND, MODULE, "msx_frontend.cli.first_process"])
def test_files_of_the_working_folder_are_not_imported(module: str, tmp_path: Path) -> None:
    """A user has files there whose names are those of Python's modules."""
    for name in ("signal", "types", "json", "socket", "runpy", "msx_frontend"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    command = [*module_command(sys.executable, module), "--help", "--"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--descriptors" in done.stdout if module == MODULE else "--model-store" in done.stdout


def test_a_path_without_the_working_folder_stays_whole(tmp_path: Path) -> None:
    """PYTHONSAFEPATH leaves it out itself."""
    (tmp_path / "first.py").write_text("import sys\nprint(sys.path[0], sys.argv[1:], __name__)")
    env = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*module_command(sys.executable, "first"), "x"], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{tmp_path} ['x'] __main__\n", "")
