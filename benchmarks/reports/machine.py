"""The machine on which the figures were measured: without it they cannot be judged."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import version
from pathlib import Path

import psutil

PACKAGES = ("msx-serve", "uvicorn", "uvloop", "httptools", "msgspec")
BUSY = 0.5
"""Load average (1 minute) from which a machine counts as busy."""


@dataclass(frozen=True)
class Machine:
    cores: int
    processor: str
    memory_gib: float
    system: str
    python: str
    packages: dict[str, str]
    load: float
    """Average of the minute before the first benchmark of this process."""
    date: str

    @property
    def busy(self) -> bool:
        return self.load >= BUSY

    def lines(self) -> list[str]:
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        hardware = f"{self.cores} cores ({self.processor}), {self.memory_gib:.0f} GiB"
        found = [
            f"Machine: {hardware}, {self.system}; load {self.load:.2f}",
            f"Versions: Python {self.python}, {packages}",
            f"Date: {self.date}",
        ]
        warning = f"The machine was busy (load {self.load:.2f}) when this began: these figures are not worth keeping."
        return [*found, warning] if self.busy else found


@cache
def machine() -> Machine:
    """As it was at the first call: later calls would see the load of the benchmarks themselves."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        memory_gib=psutil.virtual_memory().total / 2**30,
        system=f"{platform.system()} {platform.release().partition('-')[0]}",
        python=platform.python_version(),
        packages={name: version(name) for name in PACKAGES},
        load=os.getloadavg()[0],
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()
