"""The cores near a PCI device, as the kernel knows them."""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

PCI = Path("/sys/bus/pci/devices")

MOST_CORES = 4096
"""Cores in one range: more than any machine has."""

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def local_cores(pci: Path, bus_id: str) -> frozenset[int]:
    """The cores of the device's NUMA node; empty where the kernel knows none (node -1). `bus_id`: 0000:C1:00.0."""
    folder = pci / bus_id.lower()
    try:
        on_a_node = bool(bus_id) and int((folder / "numa_node").read_text()) >= 0
        return parse_cores((folder / "local_cpulist").read_text()) if on_a_node else frozenset()
    except (OSError, ValueError):
        return frozenset()


def parse_cores(text: str) -> frozenset[int]:
    """`0-23,48-71`, as the kernel writes lists of cores."""
    ranges = ((int(match[1]), int(match[2] or match[1])) for match in _RANGE.finditer(text))
    return frozenset(core for first, last in ranges for core in range(first, min(last, first + MOST_CORES - 1) + 1))


def core_list(cores: Iterable[int]) -> str:
    """The text that `parse_cores` reads."""
    runs = groupby(enumerate(sorted(cores)), lambda pair: pair[1] - pair[0])
    ranges = ([core for _, core in run] for _, run in runs)
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ranges)
