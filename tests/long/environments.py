"""Environments of the long tests, each made where it is missing: their packages are large, and some exclude others."""

from __future__ import annotations

from pathlib import Path

from tests.contract.runs import ROOT, make_environment

REQUIREMENTS = Path(__file__).parent / "requirements"


def environment(name: str) -> str:
    """The Python of the one with `requirements/NAME.txt`."""
    return make_environment(REQUIREMENTS / f"{name}.txt", ROOT / f".venv-long-{name}")
