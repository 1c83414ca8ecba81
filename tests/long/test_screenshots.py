"""The pictures of docs/screenshots are of the pages as they are now: `MSX_WRITE_SCREENSHOTS=1` makes them anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import Browser, browser, needs_browser
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.e2e.test_browser import batch, give_key

pytestmark = [pytest.mark.e2e, pytest.mark.long, needs_browser, pytest.mark.timeout(300)]

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
SIZE = (1100, 800)
VIEWS = {
    "overview": ("management", "console#/", "The last hour"),
    "model": ("management", "console#/model/echo/1.0", "Scale"),
    "jobs": ("management", "console#/jobs", "done with 400"),
    "batches": ("management", "console#/batches", "completed"),
    "traces": ("management", "console#/traces", "Traces"),
    "register": ("management", "console#/register", "Register"),
    "playground-predict": ("inference", "playground#/predict/norms", "Content type"),
    "playground-chat": ("inference", "playground#/chat/parrot", "Message (Ctrl+Enter sends it)"),
    "playground-embed": ("inference", "playground#/embed/parrot", "Texts, a line each"),
    "docs": ("inference", "docs", "What answers here"),
}
"""The listener, the place, and words that the view shows."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("screenshots")
    for service in ("echo", "parrot", "norms", "raises"):
        pack_service(service, new_store(folder))
    models = [f"{name}.mar" for name in ("echo", "parrot", "norms", "raises")]
    with run_server(folder, "--models", *models, tokens=True, properties="jobs=true\njobs_at_once=2\n") as running:
        for number in range(200):
            running.predict("echo", b"x" * number)
        running.predict("raises", b"x")
        for text in ("one two", 3, "one two three", "hang one", "hang two", "hang three", "one"):
            body = {"model": "parrot", "prompt": text}
            running.inference.post("/v1/completions", json=body, headers={"Prefer": "respond-async"})
        for prompts in (("one", "two two", "three"), ("four", "hang one")):
            batch(running, *prompts)
        yield running


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_in_light_and_dark(server: RunningServer, view: str, tmp_path: Path) -> None:
    listener, place, words = VIEWS[view]
    folder = FOLDER if os.environ.get("MSX_WRITE_SCREENSHOTS") else tmp_path
    folder.mkdir(exist_ok=True)
    with browser(*SIZE) as tab:
        tab.open(f"{server.info[listener]}/{place}")
        if view != "docs":
            tab.wait_for("This server asks for")
            give_key(server, tab, listener)
        tab.wait_for(words)
        act(server, tab, view)
        for scheme in ("light", "dark"):
            tab.dark(scheme == "dark")
            tab.picture(folder / f"{view}-{scheme}.png")
            assert view == "docs" or tab.barriers() == [], scheme  # docs is Swagger UI's
            assert (folder / f"{view}-{scheme}.png").stat().st_size > 10_000
        assert tab.script_errors() == []
        assert tab.other_hosts() == set()


def act(server: RunningServer, tab: Browser, view: str) -> None:
    """Something to look at."""
    if view == "playground-predict":
        tab.press("Send")
        tab.wait_for("handler ")
    elif view == "playground-chat":
        tab.write("#message", "What is a model server?")
        tab.press("Send")
        tab.wait_for("handler ")
    elif view == "playground-embed":
        tab.write("#texts", "The sea is salty\nSalt is in the sea\nA model server")
        tab.press("Embed")
        tab.wait_for("4 numbers each")
        tab.wait_for("handler ")
    elif view in ("overview", "model"):
        tab.wait_for("READY")
        wait_until(lambda: has_curve(server, tab), "a chart has a curve")


def has_curve(server: RunningServer, tab: Browser) -> bool:
    """Whether there is a curve of three points, made every 10 s: until then the server gets something to count."""
    for number in range(20):
        server.predict("echo", b"x" * number)
    drawn = tab.driver.execute_script("return document.querySelector('path.curve')?.getAttribute('d') ?? ''")
    return str(drawn).count("L") >= 2


def test_the_pictures_are_there() -> None:
    expected = {f"{view}-{scheme}.png" for view in VIEWS for scheme in ("light", "dark")}
    assert {path.name for path in FOLDER.glob("*.png")} == expected


def test_a_barrier_is_found(server: RunningServer) -> None:
    with browser(*SIZE) as tab:
        tab.open(f"{server.info['inference']}/playground")
        tab.wait_for("This server asks for")
        tab.driver.execute_script("document.querySelector('main').append(document.createElement('img'))")
        assert any(found.startswith("image-alt") for found in tab.barriers())
