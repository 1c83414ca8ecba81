"""scripts/trace-prediction: a warm prediction passes few files and makes few calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "_trace_prediction.py"


def test_warm_prediction_makes_few_calls() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), f"{done.stdout}\n{done.stderr}"
    lines = done.stdout.splitlines()
    assert lines[1].endswith("data_received")
    assert any(line.endswith("predict") for line in lines)
