"""Actions of the console on a server, by forms, by the curl lines that they show, and by keyboard; and views that are
hard to show: a hundred models, a slow connection, a phone."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import Browser, browser, needs_browser
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.e2e.test_browser import give_key
from tests.file_server import file_server

pytestmark = [pytest.mark.e2e, pytest.mark.long, needs_browser, pytest.mark.timeout(300)]

OPEN = "enable_model_api=true\nconsole_upload=true\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    for version in ("1.0", "2.0"):
        pack_service("echo", new_store(tmp_path), version=version)
        (tmp_path / "store" / "echo.mar").rename(tmp_path / "store" / f"echo-{version}.mar")
    with run_server(tmp_path, "--models", "echo-1.0.mar", "echo-2.0.mar", properties=OPEN, tokens=True) as running:
        yield running


def console(server: RunningServer, tab: Browser, place: str, words: str) -> None:
    tab.open(f"{server.info['management']}/console#/{place}")
    tab.wait_for("This server asks for")
    give_key(server, tab, "management")
    tab.wait_for(words)


@pytest.fixture
def tab() -> Iterator[Browser]:
    with browser() as opened:
        yield opened
        assert opened.script_errors() == []
        assert opened.other_hosts() == set()


def form(tab: Browser, title: str) -> Any:
    from selenium.webdriver.common.by import By

    return tab.driver.find_element(By.XPATH, f"//form[h3[text()='{title}']]")


def fill(tab: Browser, title: str, **fields: str) -> None:
    """Again where the form has been drawn anew meanwhile: a change before it has come."""
    for name, value in fields.items():
        wait_until(partial(_is_filled, tab, title, name, value), f"{name} is filled", lambda: tab.text)


def _is_filled(tab: Browser, title: str, name: str, value: str) -> bool:
    from selenium.common.exceptions import StaleElementReferenceException

    with contextlib.suppress(StaleElementReferenceException):
        field = form(tab, title).find_element("css selector", f"[name='{name}']")
        if field.get_attribute("type") != "file":
            field.clear()
        field.send_keys(value)
        return True
    return False


def submit(tab: Browser, title: str) -> None:
    form(tab, title).find_element("css selector", "button[type=submit]").click()


def run_line(server: RunningServer, tab: Browser, title: str) -> None:
    """The line that the form shows, in a shell."""
    line = tab.driver.execute_script("return arguments[0].querySelector('msx-curl').line", form(tab, title))
    assert server.keys is not None
    env = os.environ | {"MSX_MANAGEMENT_KEY": server.keys["management"]["key"]}
    done = subprocess.run(
        ["bash", "-c", f"{line} --fail-with-body"], env=env, cwd=server.store, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def versions(server: RunningServer) -> dict[str, dict[str, Any]]:
    return {one["modelVersion"]: one for one in server.versions("echo")}


def default(server: RunningServer) -> str:
    return str(server.describe("echo")["modelVersion"])


def shares(server: RunningServer) -> list[Any]:
    return [versions(server)[number].get("trafficShare") for number in ("1.0", "2.0")]


def test_scale(server: RunningServer, tab: Browser) -> None:
    console(server, tab, "model/echo/1.0", "Scale")
    fill(tab, "Scale", min_worker="2", max_worker="2")
    submit(tab, "Scale")
    wait_until(lambda: len(versions(server)["1.0"]["workers"]) == 2, "two workers", lambda: tab.text)
    fill(tab, "Scale", min_worker="1", max_worker="1")
    run_line(server, tab, "Scale")
    wait_until(lambda: len(versions(server)["1.0"]["workers"]) == 1, "one worker", lambda: tab.text)


def test_default_and_traffic(server: RunningServer, tab: Browser) -> None:
    other = "1.0" if default(server) == "2.0" else "2.0"
    console(server, tab, f"model/echo/{other}", "Default version")
    submit(tab, "Default version")
    wait_until(lambda: default(server) == other, f"{other} is the default", lambda: tab.text)
    fill(tab, "Divide the traffic", **{"1.0": "25", "2.0": "75"})
    submit(tab, "Divide the traffic")
    wait_until(lambda: shares(server) == [0.25, 0.75], "the traffic is divided", lambda: tab.text)
    fill(tab, "Divide the traffic", **{"1.0": "50", "2.0": "50"})
    run_line(server, tab, "Divide the traffic")
    assert shares(server) == [0.5, 0.5]


def test_what_is_typed_stays_while_the_page_changes(server: RunningServer, tab: Browser) -> None:
    other = "1.0" if default(server) == "2.0" else "2.0"
    console(server, tab, f"model/echo/{other}", "Divide the traffic")
    fill(tab, "Divide the traffic", **{"1.0": "10", "2.0": "90"})
    tab.driver.execute_script("document.activeElement.blur()")
    assert server.management.put(f"/models/echo/{other}/set-default").status_code == 200
    wait_until(lambda: "It is the default version." in tab.text, "the forms are drawn anew", lambda: tab.text)
    submit(tab, "Divide the traffic")
    wait_until(lambda: shares(server) == [0.1, 0.9], "the traffic is divided", lambda: tab.text)


def test_unregister_asks_first(server: RunningServer, tab: Browser) -> None:
    console(server, tab, "model/echo/2.0", "Unregister echo 2.0")
    submit(tab, "Unregister")
    tab.driver.switch_to.alert.dismiss()
    assert set(versions(server)) == {"1.0", "2.0"}
    submit(tab, "Unregister")
    tab.driver.switch_to.alert.accept()
    wait_until(lambda: set(versions(server)) == {"1.0"}, "2.0 is gone", lambda: tab.text)


def test_register_by_name_and_by_upload(server: RunningServer, tab: Browser, tmp_path: Path) -> None:
    pack_service("norms", tmp_path)
    pack_service("parrot", new_store(tmp_path))
    console(server, tab, "register", "From this machine")
    fill(tab, "From the model store or a URL", url="parrot.mar")
    submit(tab, "From the model store or a URL")
    wait_until(lambda: "parrot" in names(server), "parrot is there", lambda: tab.text)
    fill(tab, "From this machine", file=str(tmp_path / "norms.mar"), model_name="uploaded")
    submit(tab, "From this machine")
    wait_until(lambda: "uploaded" in names(server), "it is there", lambda: tab.text)
    assert server.describe("uploaded")["state"] == "READY"
    uploaded = partial(logged, server, "/console/upload/norms.mar")
    wait_until(uploaded, "the access log has the upload", server.tail)


def logged(server: RunningServer, path: str) -> list[dict[str, Any]]:
    return [line for line in server.log_lines() if path in str(line.get("path"))]


def test_an_archive_by_its_address(server: RunningServer, tab: Browser, tmp_path: Path) -> None:
    archive = pack_service("norms", tmp_path)
    with file_server() as files:
        address = files.put("/norms.mar", archive.read_bytes())
        console(server, tab, "register", "From this machine")
        fill(tab, "From the model store or a URL", url=address)
        submit(tab, "From the model store or a URL")
        wait_until(lambda: "norms" in names(server), "norms is there", lambda: tab.text)
    assert server.describe("norms")["state"] == "READY"


def names(server: RunningServer) -> set[str]:
    """Names of models that serve."""
    return {one["modelName"] for one in server.all_versions() if one["state"] == "READY"}


def test_a_change_by_keyboard_alone(server: RunningServer, tab: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    tab.open(f"{server.info['management']}/console#/model/echo/1.0")
    tab.wait_for("This server asks for")
    assert server.keys is not None
    reach(tab, "element.id === 'key-management'")
    tab.driver.switch_to.active_element.send_keys(server.keys["management"]["key"], Keys.ENTER)
    tab.wait_for("Scale")
    for name in ("min_worker", "max_worker"):
        reach(tab, f"element.name === '{name}'")
        tab.driver.switch_to.active_element.send_keys(Keys.CONTROL, "a")
        tab.driver.switch_to.active_element.send_keys("2")
    reach(tab, "element.type === 'submit' && element.textContent === 'Scale'")
    tab.driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait_until(lambda: len(versions(server)["1.0"]["workers"]) == 2, "two workers", lambda: tab.text)


def reach(tab: Browser, condition: str) -> None:
    """Presses Tab until what has the focus meets the condition; all that Tab reaches can be seen to have it."""
    from selenium.webdriver.common.keys import Keys

    script = (
        "const element = document.activeElement, style = getComputedStyle(element);"
        f"return [{condition}, element.tabIndex < 0 || style.outlineStyle !== 'none' || style.boxShadow !== 'none'"
        " || element.outerHTML.slice(0, 200)]"
    )
    for _ in range(80):
        there, seen = tab.driver.execute_script(script)
        assert seen is True, f"the focus is not to be seen: {seen}"
        if there:
            return
        tab.driver.switch_to.active_element.send_keys(Keys.TAB)
    raise AssertionError(f"80 times Tab do not reach {condition}")


def test_a_hundred_models(server: RunningServer, tab: Browser) -> None:
    for number in range(100):
        server.register(Path("echo-1.0.mar"), model_name=f"model-{number:03}", initial_workers=0).raise_for_status()
    console(server, tab, "", "Show all 102")
    tab.press("Show all 102")
    tab.wait_for("model-099")
    assert all(f"model-{number:03}" in tab.text for number in range(100))
    assert tab.barriers() == []
    server.kill_worker(server.worker_pids("echo")[0], "echo")
    tab.driver.get(f"{server.info['management']}/console#/model/model-050/1.0")
    tab.wait_for("Scale")


def test_a_slow_connection_shows_no_blank_page(server: RunningServer, tab: Browser) -> None:
    slow = {"offline": False, "latency": 400, "downloadThroughput": 20_000, "uploadThroughput": 20_000}
    tab.driver.execute_cdp_cmd("Network.enable", {})
    tab.driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    tab.open(f"{server.info['management']}/console")
    wait_until(lambda: tab.text.strip(), "something is shown")
    tab.wait_for("This server asks for", limit=60)
    give_key(server, tab, "management")
    wait_until(lambda: tab.text.strip(), "something is shown")
    tab.wait_for("The last hour", limit=60)


@pytest.mark.parametrize("place", ["", "model/echo/1.0", "jobs", "batches", "traces", "register"])
def test_a_phone_needs_no_scrolling_sideways(server: RunningServer, place: str) -> None:
    with browser(390, 800) as phone:
        device = {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
        phone.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
        console(server, phone, place, "Models" if not place else "echo" if "echo" in place else "")
        width = phone.driver.execute_script("return document.documentElement.scrollWidth")
        assert width <= 390, place
