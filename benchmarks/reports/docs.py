"""The parts of docs/benchmarks.md that a run rewrites: between `<!-- NAME -->` and `<!-- /NAME -->`."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
PLOTS = PAGE.parent / "plots"


class NoMarkers(Exception):
    """The page has no place for these figures."""


def replace(page: str, name: str, text: str) -> str:
    """The page with `text` between the markers of `name`. Raises NoMarkers."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise NoMarkers(f"docs/benchmarks.md has no {begin.strip()} … {end}: it says where the figures go.")
    return f"{before}{begin}\n{text}\n\n{end}{after}"
