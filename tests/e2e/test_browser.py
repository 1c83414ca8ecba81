"""The console, the playground and the API's page in a real browser: a few views; the rest in the long lane."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import Browser, browser, needs_browser
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

MODELS = ("echo", "parrot", "norms", "embeds")
VERSIONS = 28
"""More than the models' table shows before someone asks for all."""

pytestmark = [pytest.mark.e2e, needs_browser, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("browser")
    for service in MODELS:
        pack_service(service, new_store(folder))
    models = [f"{one}.mar" for one in MODELS]
    with run_server(folder, "--models", *models, tokens=True, properties="jobs=true\njobs_at_once=1\n") as running:
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
    for model in MODELS:
        assert model in tab.text
    server.kill_worker(server.worker_pids("echo")[0], "echo")
    tab.wait_for("4 of 4")
    tab.driver.get(f"{server.info['management']}/console#/model/echo/1.0")
    tab.wait_for("Scale")


def test_only_the_ways_of_a_model_are_offered_and_the_first_is_chosen(server: RunningServer, tab: Browser) -> None:
    tab.open(f"{server.info['inference']}/playground#/chat/echo")
    tab.wait_for("This server asks for")
    give_key(server, tab, "inference")
    tab.wait_for("Content type")
    assert (ways(tab), tab.focused()) == (["predict"], "model")
    tab.keys("ARROW_DOWN")  # by keyboard alone: the choice of the model keeps the keyboard
    tab.wait_for("Texts, a line each")
    assert (ways(tab), tab.focused()) == (["embed", "predict"], "model")
    assert tab.driver.current_url.endswith("#/embed/embeds")
    tab.one("#model").send_keys("parrot")
    tab.wait_for("Message (Ctrl+Enter sends it)")
    assert ways(tab) == ["chat", "embed", "predict"]
    assert "Copy" not in tab.text  # there is no line for curl before a question
    tab.one("#way-chat").send_keys("")
    tab.keys("ARROW_RIGHT")
    tab.wait_for("Texts, a line each")
    assert tab.focused() == "way-embed"


def ways(tab: Browser) -> list[str]:
    return list(
        tab.driver.execute_script("return [...document.querySelectorAll('[name=way]')].map((one) => one.value)")
    )


def open_console(server: RunningServer, tab: Browser, place: str, words: str) -> None:
    tab.open(f"{server.info['management']}/console#/{place}")
    tab.wait_for("This server asks for its management key")
    give_key(server, tab, "management")
    tab.wait_for(words)


def test_nothing_is_cut_on_a_phone(server: RunningServer, tab: Browser) -> None:
    tab.width(390)
    open_console(server, tab, "", "The last hour")
    tab.wait_for("4 of 4")
    name, state, traffic, p99 = (bottom(tab, one) for one in ("Model", "State", "Traffic", "p99"))
    assert max(name, state, traffic) - min(name, state, traffic) < 8  # pixels: they stand in one line
    assert p99 > name + 8
    for width in (390, 768, 1280):
        tab.width(width)
        for place, words in (
            ("", "Server's memory"),
            ("model/parrot/1.0", "Scale"),
            ("traces", "Slow"),
            ("jobs", "The newest"),
            ("batches", "Lines that wait"),
            ("register", "Upload"),
        ):
            tab.driver.get(f"{server.info['management']}/console#/{place}")
            tab.wait_for(words)
            assert tab.cut() == [], f"{place} at {width}"
            tab.dark(width < 1280)
            assert tab.barriers() == [], f"{place} at {width}"


def bottom(tab: Browser, column: str) -> float:
    """Where a cell of the first row ends."""
    cell = f"document.querySelector('td[data-name=\"{column}\"]')"
    return float(tab.driver.execute_script(f"return {cell}.getBoundingClientRect().bottom"))


def test_jobs_are_listed_and_cancelled_by_the_keyboard(server: RunningServer, tab: Browser) -> None:
    done, running, queued = (defer(server, text) for text in ("one", "hang one", "two"))
    open_console(server, tab, "jobs", done)
    tab.wait_for("running")
    first = "return document.querySelector('tbody tr').innerText"
    wait_until(lambda: "queued" in tab.driver.execute_script(first), "the newest is the first", lambda: tab.text)
    tab.driver.execute_script("window.confirm = () => true")
    press_enter(tab, running)
    tab.wait_for(f"{running}: cancelled")
    wait_until(lambda: tab.driver.execute_script("return document.activeElement.id") == f"act-{running}", "the focus")
    wait_until(lambda: "done" in tab.driver.execute_script(first), "the next one runs", lambda: tab.text)
    for id in (done, running, queued):
        press_enter(tab, id)
        tab.wait_for(f"{id}: forgotten")
    tab.wait_for("There are no such jobs.")


def test_batches_and_files_are_listed_cancelled_and_deleted(server: RunningServer, tab: Browser) -> None:
    done, hanging = batch(server, "one", "two"), batch(server, "hang one")
    open_console(server, tab, "batches", done)
    tab.wait_for("completed")
    tab.wait_for("2 of 2")
    tab.wait_for("in_progress")
    tab.driver.execute_script("window.confirm = () => true")
    press_enter(tab, hanging)
    tab.wait_for(f"{hanging}: cancelling")
    tab.wait_for("cancelled")
    for file in server.inference.get("/v1/files").json()["data"]:
        press_enter(tab, file["id"])
        tab.wait_for(f"{file['id']}: deleted")
    tab.wait_for("There are no files.")
    assert server.metric("msx_batch_lines_ended_total", state="done") == 2


def batch(server: RunningServer, *prompts: str) -> str:
    """The id of a batch with lines of these prompts."""
    rows = [
        {"custom_id": prompt, "method": "POST", "url": "/v1/completions", "body": {"model": "parrot", "prompt": prompt}}
        for prompt in prompts
    ]
    content = "".join(f"{json.dumps(one)}\n" for one in rows)
    sent = server.inference.post("/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", content)})
    asked = {"input_file_id": sent.json()["id"], "endpoint": "/v1/completions", "completion_window": "24h"}
    made = server.inference.post("/v1/batches", json=asked)
    assert made.status_code == 200, made.text
    return str(made.json()["id"])


def press_enter(tab: Browser, id: str) -> None:
    """On the button of a job, batch or file, which may be drawn anew meanwhile: then the keyboard is on the new one."""
    focus = f"const one = document.querySelector('#act-{id}'); one?.focus(); return one !== null"
    wait_until(lambda: tab.driver.execute_script(focus), f"{id} is listed", lambda: tab.text)
    tab.keys("ENTER")


def defer(server: RunningServer, text: str) -> str:
    body = {"model": "parrot", "prompt": text, "stream": text.startswith("hang")}
    reply = server.inference.post("/v1/completions", json=body, headers={"Prefer": "respond-async"})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def test_many_models(server: RunningServer, tab: Browser) -> None:
    for number in range(VERSIONS):
        archive = pack_service("echo", server.store, version=f"2.{number}", model="many")
        assert server.register(archive, initial_workers=0).status_code == 200
    open_console(server, tab, "", f"Show all {VERSIONS + len(MODELS)}")
    rows = "return document.querySelectorAll('tbody tr').length"
    assert tab.driver.execute_script(rows) == 25
    tab.one("#every").send_keys("\n")
    assert tab.driver.execute_script(rows) == VERSIONS + len(MODELS)
    assert tab.focused() == "many"  # the first of those that came
    tab.write("#filter", "parr")
    assert tab.driver.execute_script(rows) == 1
    for number in range(VERSIONS):
        server.management.delete(f"/models/many/2.{number}")


def test_a_keyboard_alone_reads_a_chart(server: RunningServer, tab: Browser) -> None:
    server.predict("echo", b"x")
    tab.open(f"{server.info['management']}/console")
    wait_until(lambda: tab.focused() == "key-management", "the keyboard is in the form that asks for the key")
    give_key(server, tab, "management")
    tab.wait_for("Batch size")
    assert tab.driver.execute_script("return document.activeElement.id") == "main"
    tab.driver.execute_script("document.querySelector('msx-chart svg').focus()")
    tab.keys("HOME")
    wait_until(lambda: re.match(r"[\d:]+: answered", tab.one("msx-chart .said").text), "the first moment's values")
    tab.keys("TAB")
    assert "answered" not in tab.one("msx-chart .said").text


def test_the_apis_page(server: RunningServer, tab: Browser) -> None:
    tab.open(f"{server.info['inference']}/docs")
    tab.wait_for("What answers here")
    # Swagger UI draws what is in sight of a page with so many routes.
    scrolled = "scrollBy(0, 200); return document.body.innerText"
    wait_until(lambda: "/predictions/{model_name}" in tab.driver.execute_script(scrolled), "a route further down")
    assert "MSX inference API" in tab.text
