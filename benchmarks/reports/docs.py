"""The parts of the pages docs/benchmarks/*.md that a run rewrites: between `<!-- NAME -->` and `<!-- /NAME -->`."""

from __future__ import annotations

from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "benchmarks"
PLOTS = PAGES.parent / "plots"


class NoMarkers(Exception):
    """No page has a place for these figures."""


def pages() -> list[Path]:
    return sorted(PAGES.glob("*.md"))


def page_of(name: str) -> Path:
    """The page with the figures of benchmark `name`. Raises NoMarkers."""
    begin, end = _markers(name)
    for path in pages():
        if begin in (text := path.read_text()) and end in text.partition(begin)[2]:
            return path
    raise NoMarkers(f"No page of docs/benchmarks has {begin.strip()} … {end}, which say where the figures go.")


def replace(page: str, name: str, text: str) -> str:
    """The page with `text` between the markers of `name`, which it has."""
    begin, end = _markers(name)
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{text}\n\n{end}{rest.partition(end)[2]}"


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->\n", f"<!-- /{name} -->"
