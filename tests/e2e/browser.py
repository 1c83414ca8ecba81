"""A real browser: Debian's Chromium without a window, where it is installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.server import wait_until

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium and its driver are not installed")

REFUSED = "Failed to load resource"
"""The browser's log entry for an answer that is an error: the page may have asked for it."""


class Browser:
    """One tab. `texts` and `wait_for` look at what a reader sees."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._hosts: set[str] = set()

    def open(self, url: str) -> None:
        self.driver.get(url)
        self._hosts.add(urlsplit(url).netloc)

    @property
    def text(self) -> str:
        return str(self.driver.execute_script("return document.body.innerText"))

    def wait_for(self, words: str, limit: float = 60.0) -> None:
        wait_until(lambda: words in self.text, f"the page shows {words!r}", lambda: self.text, limit)

    def one(self, selector: str) -> Any:
        from selenium.webdriver.common.by import By

        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def write(self, selector: str, text: str) -> None:
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def press(self, words: str) -> None:
        """The button with these words."""
        from selenium.webdriver.common.by import By

        buttons = self.driver.find_elements(By.TAG_NAME, "button")
        next(one for one in buttons if one.text == words and one.is_displayed()).click()

    def keys(self, *pressed: str) -> None:
        """Press keys where the keyboard is: names of selenium's Keys, such as "TAB"."""
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        ActionChains(self.driver).send_keys(*(getattr(Keys, one) for one in pressed)).perform()

    def focused(self) -> str:
        """The element where the keyboard is, by its id or text."""
        return str(self.driver.execute_script("return document.activeElement.id || document.activeElement.innerText"))

    def cut(self) -> list[str]:
        """Regions with more than their width shows, and the page itself."""
        wide = "[...document.querySelectorAll('.scroll, html')].filter((one) => one.scrollWidth > one.clientWidth)"
        return list(self.driver.execute_script(f"return {wide}.map((one) => one.getAttribute('aria-label') ?? 'page')"))

    def width(self, pixels: int) -> None:
        size = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": pixels < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def dark(self, on: bool = True) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def picture(self, file: Path) -> None:
        self.driver.save_screenshot(str(file))

    def barriers(self) -> list[str]:
        """Faults that axe-core calls serious or critical: things that keep people from using the page."""
        from importlib.metadata import distribution

        script = Path(str(distribution("axe-core-python").locate_file("axe_core_python/axe.min.js"))).read_text()
        # Past the page's own rules, which allow no script but its files.
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": script})
        found = self.driver.execute_async_script(
            "const done = arguments[0];"
            "axe.run().then(done, error => done({violations: [{impact: 'critical', id: String(error)}]}))"
        )
        serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {[node['html'][:120] for node in one.get('nodes', ())]}" for one in serious]

    def script_errors(self) -> list[str]:
        logged = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [message for message in logged if REFUSED not in message]

    def other_hosts(self) -> set[str]:
        """Hosts that the page has asked for something, beside those that were opened."""
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urlsplit(message["params"]["request"]["url"])
                found |= {url.netloc} if url.scheme.startswith("http") else set()
        return found - self._hosts


@contextmanager
def browser(width: int = 1280, height: int = 900) -> Iterator[Browser]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--window-size={width},{height}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
