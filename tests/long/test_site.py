"""The site of docs/ in a real browser, opened from a folder: its search, and its tables on a phone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.browser import Browser, browser, needs_browser
from tests.e2e.server import wait_until

ROOT = Path(__file__).parents[2]
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
FIRST = "return document.querySelector('.md-search-result__link')?.href ?? ''"
BROKEN = (
    "return [...document.querySelectorAll('td code')].filter(one => one.getClientRects().length > 1)"
    ".map(one => one.textContent)"
)
SEARCHED = {
    "rollback": "management.html",
    "troubleshoot": "operate.html",
    "health check": "server.html",
    "graceful": "server.html",
    "rolling update": "kubernetes.html",
    "rate limit": "keys.html",
    "scale to zero": "autoscaling.html",
    "backpressure": "inference.html",
    "cold start": "autoscaling.html",
}
"""By what people type: the page that comes first."""

pytestmark = [pytest.mark.long, needs_browser, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="needs the extra `docs`")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder


@pytest.fixture
def tab() -> Iterator[Browser]:
    with browser() as opened:
        yield opened
        assert opened.script_errors() == []
        assert opened.other_hosts() == set()


def first(tab: Browser) -> str:
    """The page of the first result, which changes with each letter."""
    return str(tab.driver.execute_script(FIRST)).rpartition("/")[2].partition("?")[0]


def is_first(tab: Browser, page: str) -> bool:
    return first(tab) == page


@pytest.mark.parametrize("page", ["index.html", "internals/http2.html"])
def test_a_site_in_a_folder_is_searched(page: str, site: Path, tab: Browser) -> None:
    tab.open((site / page).as_uri())
    tab.driver.execute_script("document.querySelector('input[name=query]').focus()")
    for words, wanted in SEARCHED.items():
        tab.write("input[name=query]", words)
        wait_until(partial(is_first, tab, wanted), f"{wanted} comes first for {words!r}", partial(first, tab))


@pytest.mark.parametrize("page", ["server-config", "metrics", "from-torchserve", "comparison"])
def test_a_phone_shows_names_whole(page: str, site: Path, tab: Browser) -> None:
    tab.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    tab.open((site / f"{page}.html").as_uri())
    assert tab.driver.execute_script(BROKEN) == []
    assert tab.driver.execute_script("return document.documentElement.scrollWidth") == PHONE["width"], "tables scroll"
