"""Modules that run in an interpreter of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from msx_core.chat_templates.request_template import written_apart
from msx_core.module_command import module_command
from msx_frontend.supervision.frontend_process import COMMAND
from msx_frontend.supervision.replacement import MODULE

ROOT = Path(__file__).parents[2]
OTHERS = {
    "backend/msx_llm/text/text_process.py": "the folder is the worker's own",
    "compat/msx_mindspore_serving/servables/function_pool.py": "the folder is the worker's own",
    "frontend/msx_frontend/workers/rank_start.py": "the folder is made for the worker",
    "frontend/msx_ray/driver/holder.py": "it is sent to nodes by value, and its folder is /",
}
"""Modules that run others by `-m`, and why they may."""


@pytest.mark.parametrize("module", [COMMAND, MODULE, "msx_frontend.cli.first_process"])
def test_files_of_the_working_folder_are_not_imported(module: str, tmp_path: Path) -> None:
    """A user has files there whose names are those of Python's modules."""
    fill(tmp_path)
    command = [*module_command(sys.executable, module), "--help", "--"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--descriptors" in done.stdout if module == MODULE else "--model-store" in done.stdout


def fill(folder: Path) -> None:
    for name in ("signal", "types", "json", "socket", "runpy", "msx_frontend", "msx_core"):
        (folder / f"{name}.py").write_text("raise SystemExit(9)")


def test_a_template_is_rendered_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert written_apart("{{ name }}", {"name": "sea"}) == "sea"


def test_a_plan_is_made_in_any_folder(tmp_path: Path) -> None:
    fill(tmp_path)
    command = [*module_command(sys.executable, COMMAND), "plan", "none.json", "--npu", "cpu"]
    (tmp_path / "none.json").write_text("{}")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "missing required field" in done.stderr


def test_each_process_is_started_so() -> None:
    folders = ("sdk", "archiver", "backend", "frontend", "compat")
    sources = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    by_option = (file for file in sources if re.search(r'(executable|python), +"-m"', file.read_text()))
    assert {str(file.relative_to(ROOT)) for file in by_option} == {*OTHERS}


def test_a_path_without_the_working_folder_stays_whole(tmp_path: Path) -> None:
    """PYTHONSAFEPATH leaves it out itself."""
    (tmp_path / "first.py").write_text("import sys\nprint(sys.path[0], sys.argv[1:], __name__)")
    env = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*module_command(sys.executable, "first"), "x"], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{tmp_path} ['x'] __main__\n", "")
