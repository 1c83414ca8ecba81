"""One version takes the place of another while clients keep asking: no client sees a gap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server
from tests.e2e.traffic import traffic

pytestmark = pytest.mark.e2e

ANSWERS = "def handle(data, context):\n    return [{answer!r} for _ in data]\n"
FAILS = "import time\n\ntime.sleep(0.2)\nraise RuntimeError('the new weights are damaged')\n"


def folder_archive(store: Path, name: str, code: str, version: str = "1.0") -> str:
    """A model named `m` as a folder of the store."""
    folder = store / name
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_text(code)
    manifest = f'{{"model": {{"modelName": "m", "modelVersion": "{version}", "handler": "h.py"}}}}'
    (folder / "MAR-INF" / "MANIFEST.json").write_text(manifest)
    return name


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    store = new_store(tmp_path)
    folder_archive(store, "old", ANSWERS.format(answer="old"))
    with run_server(tmp_path, "--models", "old") as running:
        yield running


def register(server: RunningServer, url: str, **parameters: Any) -> httpx.Response:
    return server.management.post("/models", params={"url": url, "initial_workers": 2, **parameters})


def test_a_version_is_replaced(server: RunningServer) -> None:
    folder_archive(server.store, "new", ANSWERS.format(answer="new"))
    with traffic(server, "m") as clients:
        reply = register(server, "new", replace=True)
        assert (reply.status_code, reply.json()["status"]) == (
            200,
            'Model "m" Version: 1.0 registered with 2 initial workers',
        )
        assert server.predict("m", b"x").text == "new"
    assert clients.failures == []
    assert clients.last == {(200, "new")}
    assert [version["modelVersion"] for version in server.versions("m")] == ["1.0"]
    assert server.describe("m")["modelUrl"] == "new"


def test_a_replacement_that_fails(server: RunningServer) -> None:
    folder_archive(server.store, "bad", FAILS)
    with traffic(server, "m") as clients:
        reply = register(server, "bad", replace=True)
        assert reply.status_code == 500
        assert "the new weights are damaged" in reply.json()["message"]
    assert clients.failures == []
    assert {answer for answers in clients.clients for answer in answers} == {(200, "old")}
    described = server.describe("m")
    assert (described["state"], described["modelUrl"]) == ("READY", "old")
    assert server.inference.get("/readyz").status_code == 200


def test_the_next_version_takes_over(server: RunningServer) -> None:
    folder_archive(server.store, "two", ANSWERS.format(answer="new"), version="2.0")
    with traffic(server, "m") as clients:
        assert register(server, "two").status_code == 200
        clients.wait_for_more()
        assert server.management.put("/models/m/2.0/set-default").status_code == 200
        clients.wait_for_more()
        assert server.management.delete("/models/m/1.0").status_code == 200
    assert clients.failures == []
    assert (clients.first, clients.last) == ({(200, "old")}, {(200, "new")})
    assert server.inference.post("/predictions/m/1.0", content=b"x").status_code == 404


def test_versions_are_asked_by_number(server: RunningServer) -> None:
    folder_archive(server.store, "two", ANSWERS.format(answer="new"), version="2.0")
    register(server, "two")
    for path, answer in (("m", "old"), ("m/1.0", "old"), ("m/2.0", "new")):
        assert server.inference.post(f"/predictions/{path}", content=b"x").text == answer


def test_scaling_under_load(tmp_path: Path) -> None:
    """Workers that go finish what they have begun."""
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "all") as server:
        server.management.put("/models/echo?min_worker=3&synchronous=true")
        with traffic(server, "echo", clients=6) as clients:
            for workers in (1, 3, 2, 1):
                server.management.put(f"/models/echo?min_worker={workers}&synchronous=true")
                clients.wait_for_more()
        assert clients.failures == []
