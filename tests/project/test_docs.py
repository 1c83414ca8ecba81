"""The pages of docs/: none is too long, each is in the site's menu, and every link and anchor leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
LINKING = sorted(
    str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("examples/*/*.md")]
)
LINES = 300
LIMITS = {"README.md": 100, "CHANGELOG.md": 60, "docs/architecture.md": 150, "CONTRIBUTING.md": 10_000}
"""Lines, and bytes where they are more than a page has lines."""
WORDS = 80
HOSTS = ("unpkg.com", "jsdelivr.net", "cdnjs.", "googleapis.com")
"""Hosts that scripts and fonts of pages usually come from."""
SEARCHED = [
    ("rollback", "operate.md#changes"),
    ("rollback", "management.md#canary-releases-and-rollback"),
    ("troubleshooting", "operate.md#troubleshooting"),
    ("health check", "server.md#health-checks-probes"),
    ("graceful shutdown", "server.md#stop-graceful-shutdown"),
    ("rolling update", "kubernetes.md#the-helm-chart"),
    ("rolling update", "state.md#replicas"),
    ("high availability", "state.md#replicas"),
    ("rate limit", "keys.md#rate-limits"),
    ("scale to zero", "autoscaling.md#scale-to-zero-and-cold-starts"),
    ("cold start", "autoscaling.md#scale-to-zero-and-cold-starts"),
    ("backpressure", "inference.md#backpressure-how-much-may-wait"),
    ("backpressure", "streaming.md#clients-that-read-slowly"),
]
"""Words that people search for, and the section that is about them."""
INDEXED = ("ascend", "keys", "state", "server", "operate", "metrics", "handlers", "llm-engine", "kserve")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")


def prose(path: Path) -> str:
    return _FENCE.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    own = re.findall(r"<a id=\"([\w-]+)\">", prose(path))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | {*own}


def sections(path: Path) -> list[tuple[str, str]]:
    """The anchor and the text of each section, without those below it; the heading is part of the text."""
    parts = re.split(r"^#+ (?=\S)", prose(path), flags=re.MULTILINE)[1:]
    return [(re.sub(r"[^\w\- ]", "", part.partition("\n")[0].lower()).replace(" ", "-"), part) for part in parts]


def in_menu(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry if isinstance(entry, list) else entry.values() if isinstance(entry, dict) else ():
            yield from in_menu(below)


@pytest.mark.parametrize("page", [*LIMITS])
def test_what_is_read_first_is_short(page: str) -> None:
    text, limit = (ROOT / page).read_text(), LIMITS[page]
    size = len(text.encode()) if limit > LINES else len(text.splitlines())
    assert size <= limit, f"{page} has {size} lines or bytes of {limit}: history stays in git, details go to docs/"


def paragraphs(path: Path) -> Iterator[str]:
    """Without tables and headings; each item of a list is a paragraph."""
    for block in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) |<!--.*?-->", prose(path)):
        yield " ".join(line for line in block.splitlines() if not line.startswith(("|", "#")))


@pytest.mark.parametrize("page", LINKING)
def test_no_paragraph_is_too_long(page: str) -> None:
    for text in paragraphs(ROOT / page):
        words = len(re.sub(r"\]\([^)]*\)", "]", text).split())
        assert words <= WORDS, f"{page}: a paragraph of {words} words: {text[:60]} …"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short_enough_to_be_read(page: str) -> None:
    lines = len((DOCS / page).read_text().splitlines())
    assert lines <= LINES, f"docs/{page} has {lines} lines; divide it, and put the new page into mkdocs.yml"


def test_each_page_is_in_the_menu_once() -> None:
    assert sorted(in_menu(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])) == PAGES


@pytest.mark.parametrize("page", LINKING)
def test_each_link_leads_somewhere(page: str) -> None:
    path = ROOT / page
    for target, anchor in _LINK.findall(_CODE.sub("", prose(path))):
        to = (path.parent / target).resolve() if target else path
        assert to.exists(), f"{page} links to {target}, which is not there"
        if anchor and to.suffix == ".md":
            assert anchor in anchors(to), f"{page} links to #{anchor}, which {to.name} does not have"


def test_each_page_that_code_and_scripts_name_is_there() -> None:
    """Also those that errors name."""
    folders = ("sdk", "archiver", "backend", "frontend", "compat", "benchmarks", "deploy", "scripts", "tests")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".yaml", ""}]
    texts = [path.read_text(errors="replace") for path in files if path.is_file()]
    named = {name for text in texts for name in re.findall(r"\bdocs/([\w/-]+\.md)\b", text)}
    assert named - set(PAGES) == set()


def test_the_keys_and_metrics_that_operators_are_sent_to_are_described() -> None:
    names = re.findall(r"`([a-z]\w*_\w+|[a-z]+[A-Z]\w*)`", (DOCS / "operate.md").read_text())
    reference = "".join((DOCS / f"{name}.md").read_text() for name in ("server-config", "model-config", "metrics"))
    assert len(names) > 10
    assert [name for name in names if f"`{name}`" not in reference] == []


@pytest.mark.parametrize(("words", "place"), SEARCHED)
def test_words_that_people_search_lead_to_a_page(words: str, place: str) -> None:
    page, _, anchor = place.partition("#")
    found = [text for title, text in sections(DOCS / page) if title == anchor]
    assert [words in text.lower() for text in found] == [True], place


@pytest.mark.parametrize("page", sorted({f"{one}.md" for one in INDEXED}))
def test_pages_that_are_looked_for_are_in_the_index(page: str) -> None:
    assert f"]({page})" in (DOCS / "index.md").read_text()


def test_the_site_is_built_without_warnings_and_loads_nothing_from_another_host(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="needs the extra `docs`")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    index = tmp_path / "search" / "search_index.js"
    assert index.is_file(), "a page that is opened from a folder finds the index, which is the text of the pages"
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        assert re.search(r'<script src="[./]*iframe-worker\.js"', page.read_text()), page
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]*)\"", page.read_text())
        loaded += re.findall(r"<link\b[^>]*\bhref=\"([^\"]*)\"", page.read_text())
        assert [address for address in loaded if re.match(r"(https?:)?//", address)] == [], page
    scripts = [path.read_text() for path in tmp_path.rglob("*.js") if path != index]
    assert [name for script in scripts for name in HOSTS if name in script] == []
    styles = [path.read_text() for path in tmp_path.rglob("*.css")]
    assert [style for style in styles if re.search(r"(url\(|@import )[\"']?(https?:)?//", style)] == []
