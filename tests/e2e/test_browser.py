"""The console, the playground and the API's page in a real browser: a few views; the rest in the long lane."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import Browser, browser, needs_browser
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, needs_browser, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("browser")
    for service in ("echo", "parrot", "norms"):
        pack_service(service, new_store(folder))
    with run_server(folder, "--models", "echo.mar", "parrot.mar", "norms.mar", tokens=True) as running:
        yield running


@pytest.fixture
def tab(server: RunningServer) -> Iterator[Browser]:
    with browser() as opened:
        yield opened
        assert opened.script_errors() == []
        assert opened.other_hosts() == set()


def give_key(server: RunningServer, tab: Browser, kind: str) -> None:
    assert server.keys is not None
    tab.write(f"#key-{kind}", server.keys[kind]["key"])
    tab.press("Use this key")


def test_the_playground_predicts(server: RunningServer, tab: Browser, tmp_path: Path) -> None:
    tab.open(f"{server.info['inference']}/playground#/predict/echo")
    tab.wait_for("This server asks for its inference key")
    give_key(server, tab, "inference")
    tab.wait_for("Content type")
    tab.write("#body", '{"a": 1}')
    tab.press("Send")
    tab.wait_for("whole answer after")
    assert '"a": 1' in tab.one("msx-answer pre").text
    assert "request " in tab.text
    assert re.search(r"parse [\d.]+ ms, queue [\d.]+ ms, batch [\d.]+ ms, handler [\d.]+ ms", tab.text)
    assert server.keys is not None
    key = server.keys["inference"]["key"]
    assert key not in tab.driver.current_url
    assert key not in tab.text
    (tmp_path / "x.bin").write_bytes(b"from a file")
    tab.one("#file").send_keys(str(tmp_path / "x.bin"))
    tab.press("Send")
    tab.wait_for("from a file")


def test_a_form_by_the_models_inputs(server: RunningServer, tab: Browser) -> None:
    tab.open(f"{server.info['inference']}/playground#/predict/norms")
    tab.wait_for("This server asks for")
    give_key(server, tab, "inference")
    tab.wait_for("Content type")
    from tests.e2e.server import wait_until

    wait_until(lambda: tab.one("#body").get_attribute("value"), "an example of the inputs")
    assert json.loads(tab.one("#body").get_attribute("value"))["inputs"][0]["name"] == "rows"
    tab.press("Send")
    tab.wait_for("whole answer after")
    assert "0.0" in tab.one("msx-answer pre").text


def test_a_conversation(server: RunningServer, tab: Browser) -> None:
    tab.open(f"{server.info['inference']}/playground#/chat/parrot")
    tab.wait_for("This server asks for")
    give_key(server, tab, "inference")
    tab.wait_for("Message (Ctrl+Enter sends it)")
    tab.write("#message", "one two three")
    tab.press("Send")
    tab.wait_for("first token after")
    assert tab.one(".said.assistant").text == "one two three"
    tab.write("#tools", "not json")
    tab.write("#message", "more")
    tab.press("Send")
    tab.wait_for("Tools or schema are not JSON")


def test_embeddings(server: RunningServer, tab: Browser) -> None:
    tab.open(f"{server.info['inference']}/playground#/embed/parrot")
    tab.wait_for("This server asks for")
    give_key(server, tab, "inference")
    tab.wait_for("Texts, a line each")
    tab.write("#texts", "one\ntwo")
    tab.press("Embed")
    tab.wait_for("4 numbers each")
    assert "1.0000" in tab.text


def test_a_wrong_key(server: RunningServer, tab: Browser) -> None:
    tab.open(f"{server.info['inference']}/playground")
    tab.wait_for("This server asks for")
    tab.write("#key-inference", "wrong")
    tab.press("Use this key")
    tab.wait_for("Token")
    give_key(server, tab, "inference")
    tab.wait_for("Way")


def test_the_console(server: RunningServer, tab: Browser) -> None:
    tab.open(f"{server.info['management']}/console")
    tab.wait_for("This server asks for its management key")
    give_key(server, tab, "management")
    tab.wait_for("The last hour")
    for model in ("echo", "parrot", "norms"):
        assert model in tab.text
    server.kill_worker(server.worker_pids("echo")[0], "echo")
    tab.wait_for("3 of 3")
    tab.driver.get(f"{server.info['management']}/console#/model/echo/1.0")
    tab.wait_for("Scale")


def test_the_apis_page(server: RunningServer, tab: Browser) -> None:
    tab.open(f"{server.info['inference']}/docs")
    tab.wait_for("/predictions/{model_name}")
    assert "MSX inference API" in tab.text
