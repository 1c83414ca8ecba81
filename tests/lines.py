"""Lines of files that are still written."""

from __future__ import annotations

from pathlib import Path


def whole_lines(file: Path) -> list[str]:
    """Return those that are written to their ends; none of a file that is not there."""
    if not file.exists():
        return []
    return [line.decode() for line in file.read_bytes().rpartition(b"\n")[0].splitlines()]
