"""The imports of another program, in a child."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from msx_frontend.supervision import trial as module
from msx_frontend.supervision.replacement import PROGRAM
from msx_frontend.supervision.trial import Trial


def ended(trial: Trial) -> str:
    """The reason why it has failed, when its child has ended by itself."""
    os.waitid(os.P_PID, trial.pid, os.WEXITED | os.WNOWAIT)
    assert trial.is_over
    assert trial.seconds_left is None
    error = trial.end()
    assert not psutil.pid_exists(trial.pid)
    return "" if error is None else error.strerror or ""


def test_a_program_that_can_be_imported() -> None:
    assert ended(Trial(sys.executable, PROGRAM)) == ""


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ('PYTHONPATH="$0.d" exec {python} "$@"', "No module named 'msx_frontend.supervision.__main__'"),
        ("exit 3", "the import of its modules ended with exit code 3"),
        ("echo; echo what it says >&2; exit 3", "what it says"),
    ],
)
def test_a_program_that_is_half_written(program: str, reason: str, tmp_path: Path) -> None:
    half = tmp_path / "python.d" / "msx_frontend" / "supervision"
    half.mkdir(parents=True)
    for folder in (half, half.parent):
        (folder / "__init__.py").touch()
    assert reason in ended(Trial(script(tmp_path, program.format(python=sys.executable)), PROGRAM))


def test_a_process_that_holds_its_stderr_holds_nothing_up(tmp_path: Path) -> None:
    trial = Trial(script(tmp_path, 'sleep 600 & echo $! > "$0.pid"; exit 3'), PROGRAM)
    assert ended(trial) == "the import of its modules ended with exit code 3"
    os.kill(int((tmp_path / "python.pid").read_text()), signal.SIGKILL)


def script(folder: Path, program: str) -> str:
    """An interpreter that does this."""
    (python := folder / "python").write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    return str(python)


def test_one_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(script(tmp_path, "exec sleep 600"), PROGRAM)
    assert not trial.is_over
    assert 0 < (trial.seconds_left or 0) <= 10
    monkeypatch.setattr(trial, "_limit", 0.0)
    assert trial.is_over
    assert trial.seconds_left is None
    error = trial.end()
    assert error is not None
    assert error.strerror == f"its modules were not imported within {module.LIMIT:g} s"
    assert not psutil.pid_exists(trial.pid)


def test_no_interpreter(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Trial(str(tmp_path / "none"), PROGRAM)
