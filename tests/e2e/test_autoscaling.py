"""Workers that follow the load: real ones, of handlers without MindSpore."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import RunningServer, new_store, run_server, wait_until

pytestmark = pytest.mark.e2e

QUICK = "autoscaling:\n  targetQueueTime: 50\n  upDelay: 0.5\n  downDelay: 1\n  idleTime: 1.5\n"
WAITS = "import time\n\n\ndef handle(data, context):\n    time.sleep(0.2)\n    return ['waited' for _ in data]\n"
BREAKS = (
    "import pathlib\n\nif pathlib.Path(__file__).with_name('broken').exists():\n"
    "    raise RuntimeError('the weights are damaged')\n\n\n"
    "def handle(data, context):\n    return ['mended' for _ in data]\n"
)
DIES = """
import os, pathlib, signal

left = pathlib.Path({!r})
if count := int(left.read_text()):
    left.write_text(str(count - 1))
    os.kill(os.getpid(), signal.SIGKILL)


def handle(data, context):
    return ["loaded" for _ in data]
"""
"""Kills itself while it loads, as often as a file says."""


def folder_archive(store: Path, name: str, code: str, config: str) -> Path:
    folder = store / name
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_text(code)
    (folder / "c.yaml").write_text(config)
    manifest = f'{{"model": {{"modelName": "{name}", "modelVersion": "1", "handler": "h.py", "configFile": "c.yaml"}}}}'
    (folder / "MAR-INF" / "MANIFEST.json").write_text(manifest)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("autoscaling")
    store = new_store(folder)
    folder_archive(store, "waits", WAITS, "minWorkers: 0\nmaxWorkers: 2\n" + QUICK)
    mark = folder / "broken"
    code = BREAKS.replace("pathlib.Path(__file__).with_name('broken')", f"pathlib.Path({str(mark)!r})")
    mark.touch()
    folder_archive(store, "breaks", code, "minWorkers: 0\n" + QUICK)
    kills = folder / "kills"
    folder_archive(store, "dies", DIES.format(str(kills)), "minWorkers: 0\n" + QUICK)
    folder_archive(store, "plain", WAITS, "minWorkers: 0\n")
    with run_server(folder, "--models", "waits", "breaks", "dies", "plain") as running:
        yield running


def autoscaling(server: RunningServer, model: str) -> dict[str, Any]:
    found: dict[str, Any] = server.describe(model)["autoscaling"]
    return found


def gone(server: RunningServer, model: str) -> bool:
    return not server.describe(model)["workers"]


def ask_until(enough: threading.Event, server: RunningServer) -> set[tuple[int, str]]:
    """The answers, at least one."""
    answers: set[tuple[int, str]] = set()
    while not answers or not enough.is_set():
        reply = server.predict("waits", b"x")
        answers.add((reply.status_code, reply.text))
    return answers


def test_from_none_to_two_and_back(server: RunningServer) -> None:
    assert gone(server, "waits")
    assert server.inference.get("/readyz").status_code == 200
    with ThreadPoolExecutor(16) as clients:
        enough = threading.Event()
        answers = [clients.submit(ask_until, enough, server) for _ in range(16)]
        try:
            wait_until(lambda: server.metric("msx_workers_ready", model="waits") == 2, "two serve", server.tail)
        finally:
            enough.set()
        assert set().union(*(one.result() for one in answers)) == {(200, "waited")}
    wait_until(lambda: gone(server, "waits"), "no worker is left", server.tail)
    last = autoscaling(server, "waits")["lastDecision"]
    assert (last["to"], last["reason"]) == (0, "no request for 1.5 s")
    assert server.metric("msx_autoscaling_decisions_total", model="waits", direction="up") >= 2
    assert any("msx.autoscaling" in line and "workers 0 -> 1" in line for line in server.log.read_text().splitlines())


def test_a_load_that_fails_is_told_and_tried_again_later(server: RunningServer) -> None:
    refused = server.predict("breaks", b"x")
    assert refused.status_code == 503
    assert "the weights are damaged" in refused.text
    wait_until(lambda: gone(server, "breaks"), "the worker is gone", server.tail)
    (server.folder / "broken").unlink()
    mended = wait_until(
        lambda: (reply := server.predict("breaks", b"x")).status_code == 200 and reply, "it serves", server.tail
    )
    assert mended.text == "mended"


def test_requests_outlive_two_kills_of_the_load_that_they_wait_for(server: RunningServer) -> None:
    kills = server.folder / "kills"
    kills.write_text("2")
    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(server.predict, "dies", b"x") for _ in range(8)]
        assert {(one.result().status_code, one.result().text) for one in asked} == {(200, "loaded")}
    wait_until(lambda: gone(server, "dies"), "no worker is left", server.tail)
    kills.write_text("3")
    refused = server.predict("dies", b"x")
    assert (refused.status_code, kills.read_text()) == (503, "0")
    assert "starts it again: killed by SIGKILL, perhaps out of memory" in refused.text
    assert int(refused.headers["retry-after"]) >= 1


def test_without_it_a_model_without_workers_refuses(server: RunningServer) -> None:
    server.management.put("/models/plain", params={"min_worker": 0, "synchronous": True})
    refused = server.predict("plain", b"x")
    assert (refused.status_code, "Please use scale workers API" in refused.text) == (503, True)
    assert "autoscaling" not in server.describe("plain")
