"""Python 3.10 can import the packages; other checks run on whichever Python there is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("sdk", "archiver", "backend", "frontend", "compat")
TWO_BASES = re.compile(r"^ *class \w+\((?:NamedTuple, .+|.+, NamedTuple)\):", re.MULTILINE)


def test_no_named_tuple_has_another_base() -> None:
    """Python 3.10 raises TypeError for one, generic ones included."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    assert [str(path.relative_to(ROOT)) for path in paths if TWO_BASES.search(path.read_text())] == []
