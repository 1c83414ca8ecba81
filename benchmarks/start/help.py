"""How long `--help` of the commands takes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.reports.figures import figure, median, spread
from benchmarks.reports.table import Table, Target

LIMIT = 150.0
"""ms."""
SCRIPTS = ("msx-serve", "msx-archiver", "msx-workflow-archiver")
FLOOR = "python -c 'import click'"
_BIN = Path(sys.executable).parent
COMMANDS = {
    FLOOR: [sys.executable, "-c", "import click"],
    **{f"{name} --help": [str(_BIN / name), "--help"] for name in SCRIPTS},
}


def help_times(runs: int) -> dict[str, list[float]]:
    """ms of each command, which take turns; one run before these warms the disk cache."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs + 1):
        for name, command in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times[name].append((time.perf_counter() - began) * 1000)
    return {name: values[1:] for name, values in times.items()}


def help_table(times: dict[str, list[float]]) -> Table:
    rows = [(name, figure(median(values)), spread(values)) for name, values in times.items()]
    return Table("Help, ms", ("command", "median", "lowest – highest"), rows)


def help_target(times: dict[str, list[float]]) -> Target:
    slowest = max(median(values) for name, values in times.items() if name != FLOOR)
    return Target("the slowest --help, ms", figure(slowest), f"< {LIMIT:g}", slowest < LIMIT)
