"""Branch coverage by package, from the data of coverage.py, beside the floor that scripts/coverage-floor commits."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coverage import Coverage

FLOOR = Path(__file__).with_name("coverage-floor")
PACKAGES = (
    "msx_core", "msx_sdk", "msx_client", "msx_archiver", "msx_protocol", "msx_backend", "msx_llm", "msx_vllm",
    "msx_net", "msx_frontend", "msx_ray", "msx_torchserve", "msx_mindspore_serving",
)  # fmt: skip


def read_floor(text: str) -> dict[str, float]:
    """A line a package: its name and percent."""
    return {name: float(percent) for name, percent in (line.split() for line in text.splitlines() if line.strip())}


def floor_text(measured: Mapping[str, float]) -> str:
    """Rounded down to a tenth of a percent, so that the same run meets it."""
    return "".join(f"{name} {floor(percent * 10) / 10:.1f}\n" for name, percent in measured.items())


def report(measured: Mapping[str, float], least: Mapping[str, float]) -> str:
    lines = [
        f"{name:<14}{percent:7.2f} %" + (f"   floor {least[name]:.1f} %" if name in least else "")
        for name, percent in measured.items()
    ]
    return "\n".join(["Branch coverage by package:", *lines])


def losses(measured: Mapping[str, float], least: Mapping[str, float]) -> list[str]:
    """One sentence for each package that is below its floor, or was not measured."""
    return [
        f"{name}: coverage is {measured.get(name, 0.0):.2f} %, and scripts/coverage-floor asks for {percent:.1f} %: "
        "add tests for what `coverage report --show-missing` lists, or commit the lower floor with the reason."
        for name, percent in least.items()
        if measured.get(name, 0.0) < percent
    ]


def measure() -> dict[str, float]:
    """Percent of statements and branches that ran, by package, from the combined data file."""
    from coverage import Coverage

    data = Coverage()
    data.load()
    return {name: _percent(data, name) for name in PACKAGES}


def _percent(data: Coverage, package: str) -> float:
    """0 for a package that no test imported."""
    from coverage.exceptions import NoDataError

    try:
        with open(os.devnull, "w") as nothing:
            return data.report(include=[f"*/{package}/*"], file=nothing)
    except NoDataError:
        return 0.0


def main() -> int:
    parser = ArgumentParser(prog="scripts/coverage", description=__doc__)
    parser.add_argument("--write", action="store_true", help="Write the measured figures into scripts/coverage-floor.")
    parser.add_argument("--only-print", action="store_true", help="Do not compare: a part of the tests covers less.")
    asked = parser.parse_args()
    measured = measure()
    if asked.write:
        FLOOR.write_text(floor_text(measured))
    least = {} if asked.only_print else read_floor(FLOOR.read_text())
    print(report(measured, least))
    found = losses(measured, least)
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
