"""The versions that work together, and how versions are compared."""

from __future__ import annotations

import re
from typing import NamedTuple

Version = tuple[int, ...]


class Range(NamedTuple):
    """From `least` on, below `below`."""

    least: str
    below: str

    def has(self, version: str) -> bool:
        return numbers(self.least) <= numbers(version) < numbers(self.below)

    def __str__(self) -> str:
        return f">={self.least},<{self.below}"


PYTHON = Range("3.10", "3.13")
PACKAGES = {"mindspore": Range("2.10", "2.11"), "numpy": Range("1.26", "2"), "ray": Range("2.55", "3")}
"""As pyproject.toml has them."""

CANN = ("8.2", "8.3", "8.5", "9.0", "9.1")
"""Those that MindSpore 2.10 takes, by its own check at the start (mindspore/run_check/_check_version.py)."""

DRIVERS = {"8.2": "25.2", "8.5": "25.2", "9.1": "26.1"}
"""By CANN: the driver (Ascend HDK) that the vendor's release notes name beside it (MindIE 2.1.RC1, CANN 8.5.0.alpha001,
MindCluster 26.1.0). For 8.3 and 9.0 no note was found: their drivers are not judged."""


def numbers(version: str) -> Version:
    """`8.3.RC1` becomes (8, 3): the numbers before anything else."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def minor(version: str) -> str:
    return ".".join(map(str, numbers(version)[:2]))
