"""Clients that flood a server with jobs, bytes and callbacks, or ask for the jobs of others, beside a neighbour."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.frontend.deferred.callbacks.receiver import SECRET, receiver

pytestmark = [pytest.mark.e2e, pytest.mark.long]

KEYS = {name: f"{name}-{name * 8}" for name in ("mallory", "ann", "operator")}
JOBS, CALLBACKS, SIZE = 400, 20, 4 << 20
MOST_GROWTH = 64 << 20
"""Bytes that the server's process may have more after a flood."""
SOON = 20.0
"""Seconds in which a neighbour is served beside a flood, on a busy machine."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    pack_service("parrot", new_store(tmp_path), config="maxConcurrent: 64\njobQueueSize: 100")
    kinds = {"operator": ["management", "API"]}
    keys, secrets = tmp_path / "keys.json", tmp_path / "secrets"
    entries = [{"name": name, "key": key, "kind": kinds.get(name, "inference")} for name, key in KEYS.items()]
    keys.write_text(json.dumps({"keys": entries}))
    secrets.write_text(SECRET)
    for file in (keys, secrets):
        file.chmod(0o600)
    properties = (
        f"jobs=true\njobs_at_once=2\nmax_jobs={JOBS}\njobs_size={SIZE}\nmax_callbacks={CALLBACKS}\ncallback_timeout=5\n"
        f"callback_hosts=127.0.0.1\ncallback_secrets={secrets}\napi_keys_file={keys}\n"
    )
    with run_server(tmp_path, "--models", "parrot.mar", properties=properties, tokens=True) as running:
        yield running


class Asker:
    """A client with the key of this name."""

    def __init__(self, server: RunningServer, name: str) -> None:
        self.client = client_of(server.info["inference"], KEYS[name])

    def defer(self, prompt: str, **headers: str) -> httpx.Response:
        asked = {"prefer": "respond-async", **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.client.post("/v1/completions", json={"model": "parrot", "prompt": prompt}, headers=asked)

    def flood(self, count: int, prompt: str, **headers: str) -> Counter[int]:
        """Statuses of so many jobs, many at a time."""
        with ThreadPoolExecutor(16) as pool:
            return Counter(
                reply.status_code for reply in pool.map(lambda _: self.defer(prompt, **headers), range(count))
            )

    def is_answered(self, id: str) -> bool:
        return bool(self.client.get(f"/jobs/{id}?wait={SOON:g}").json()["state"] == "done")


@pytest.fixture
def mallory(server: RunningServer) -> Iterator[Asker]:
    asker = Asker(server, "mallory")
    yield asker
    asker.client.close()


@pytest.fixture
def ann(server: RunningServer) -> Iterator[Asker]:
    asker = Asker(server, "ann")
    yield asker
    asker.client.close()


def ids(reply: httpx.Response) -> list[str]:
    return [one["id"] for one in reply.json()["jobs"]]


def test_a_flood_of_jobs(server: RunningServer, mallory: Asker, ann: Asker) -> None:
    """One key gets half of the room, and a neighbour's first job runs before its many."""
    process = psutil.Process(server.info["pid"])
    before = process.memory_info().rss
    assert mallory.flood(JOBS, "pause a") == {202: JOBS // 2, 503: JOBS // 2}
    refused = mallory.defer("a")
    assert "The key mallory has all that one key may: 50% of 400 records" in refused.text
    accepted = ann.defer("one")
    assert accepted.status_code == 202, accepted.text
    assert ann.is_answered(accepted.json()["id"])
    assert len(ids(mallory.client.get("/jobs?state=queued&limit=1000"))) > JOBS // 4
    for id in ids(mallory.client.get("/jobs?limit=1000")):
        assert mallory.client.delete(f"/jobs/{id}").status_code == 200
    assert process.memory_info().rss < before + MOST_GROWTH


def test_jobs_that_are_made_and_forgotten(server: RunningServer, mallory: Asker) -> None:
    """Neither memory nor bytes on the disk are left of them, while nothing runs."""
    mallory.flood(2, "hang a")
    for _ in range(1000):
        path = mallory.defer("a").headers["location"]
        assert [mallory.client.delete(path).json()["state"] for _ in range(2)] == ["cancelled", "forgotten"]
    assert len(ids(mallory.client.get("/jobs"))) == 2
    size = sum(os.stat(file).st_size for file in server.state.glob("store.db*"))
    assert size < 16 << 20, "the log of the database is written back"
    assert server.metric("msx_jobs", state="queued") == 0


def test_a_flood_of_bytes(mallory: Asker, ann: Asker) -> None:
    mallory.flood(2, "hang a")
    found = mallory.flood(64, "x" * 100_000)
    assert 10 < found[202] < SIZE / 2 / 100_000
    assert found[202] + found[503] == 64
    assert "(max_jobs, jobs_size)" in mallory.defer("x" * 100_000).text
    assert ann.defer("x" * 100_000).status_code == 202
    assert mallory.client.post("/v1/completions", json={"model": "parrot", "prompt": "a"}).status_code == 200


def test_a_flood_of_callbacks(server: RunningServer, mallory: Asker, ann: Asker) -> None:
    """To a receiver that never answers; a neighbour's is told beside them."""
    with receiver() as silent, receiver() as hook:
        silent.statuses = [0]
        found = mallory.flood(CALLBACKS, "a", x_msx_callback=silent.url)
        assert found[202] <= CALLBACKS // 2 + 16, "those that are being written at once are not counted yet"
        assert mallory.defer("a", x_msx_callback=silent.url).status_code == 503
        wait_until(lambda: len(silent.got) >= 4, "callbacks hang", server.tail)
        accepted = ann.defer("one", x_msx_callback=hook.url)
        assert accepted.status_code == 202, accepted.text
        wait_until(lambda: hook.got, "the neighbour is told", server.tail, SOON)
        assert mallory.client.post("/v1/completions", json={"model": "parrot", "prompt": "a"}).status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://localhost:8081/models",
        "http://[::1]:8081/",
        "http://2130706433/",
        "http://127.0.0.1@example.org/",
        "http://example.org#@127.0.0.1/",
        "http://0/",
        "gopher://127.0.0.1/",
        "http://127.0.0.1\\@example.org/",
        "http://127.0.0.1%2f@example.org/",
        "//127.0.0.1/",
        "http://127.0.0.1:0x50/",
    ],
)
def test_a_callback_goes_to_hosts_of_the_list_alone(url: str, mallory: Asker) -> None:
    refused = mallory.defer("a", x_msx_callback=url)
    assert (refused.status_code, "X-Msx-Callback: " in refused.text) == (400, True)


def test_the_jobs_of_others(server: RunningServer, mallory: Asker, ann: Asker) -> None:
    id = ann.defer("one two", idempotency_key="k").json()["id"]
    assert ann.is_answered(id)
    for method, path in (("GET", ""), ("GET", "/result"), ("GET", "/events"), ("DELETE", "")):
        assert mallory.client.request(method, f"/jobs/{id}{path}").status_code == 404
        assert mallory.client.request(method, f"/management/jobs/{id}{path}").status_code in (401, 403, 404)
        assert server_refuses(server, method, f"/management/jobs/{id}{path}")
    assert ids(mallory.client.get("/jobs")) == []
    assert ids(mallory.client.get(f"/jobs?after={id}")) == []
    assert mallory.defer("other", idempotency_key="k").json()["id"] != id
    assert ann.client.get(f"/jobs/{id}/result").status_code == 200


def server_refuses(server: RunningServer, method: str, path: str) -> bool:
    """Whether the management listener refuses a client's key."""
    with client_of(server.info["management"], KEYS["mallory"]) as client:
        return client.request(method, path).status_code in (400, 401, 403, 404)
