"""Clients that flood a server with files, bytes and batches, or ask for those of others, beside a neighbour."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.adversary.test_job_floods import KEYS, MOST_GROWTH
from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FILES, BATCHES, LARGEST, SIZE = 20, 10, 1 << 20, 4 << 20
PATH = "/v1/completions"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    pack_service("parrot", new_store(tmp_path), config="maxConcurrent: 64\njobQueueSize: 100")
    keys = tmp_path / "keys.json"
    entries = [{"name": name, "key": key, "kind": "inference"} for name, key in KEYS.items()]
    keys.write_text(json.dumps({"keys": entries}))
    keys.chmod(0o600)
    properties = (
        f"jobs=true\nmax_files={FILES}\nmax_batches={BATCHES}\nmax_file_size={LARGEST}\nfiles_size={SIZE}\n"
        f"max_batch_lines=1000\napi_keys_file={keys}\n"
    )
    with run_server(tmp_path, "--models", "parrot.mar", properties=properties, tokens=True) as running:
        yield running


class Asker:
    """A client with the key of this name."""

    def __init__(self, server: RunningServer, name: str) -> None:
        self.client = client_of(server.info["inference"], KEYS[name])

    def upload(self, content: bytes) -> httpx.Response:
        return self.client.post("/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", content)})

    def create(self, file: str) -> httpx.Response:
        asked = {"input_file_id": file, "endpoint": PATH, "completion_window": "24h"}
        return self.client.post("/v1/batches", json=asked)

    def flood(self, count: int, content: bytes) -> Counter[int]:
        """Statuses of so many uploads, many at a time."""
        with ThreadPoolExecutor(16) as pool:
            return Counter(reply.status_code for reply in pool.map(lambda _: self.upload(content), range(count)))


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


def lines(count: int, prompt: str) -> bytes:
    body = {"model": "parrot", "prompt": prompt}
    rows = [{"custom_id": str(n), "method": "POST", "url": PATH, "body": body} for n in range(count)]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def test_a_flood_of_files(mallory: Asker, ann: Asker) -> None:
    assert mallory.flood(60, b"x") == {200: FILES, 400: 60 - FILES}
    assert "(max_files)" in mallory.upload(b"x").text
    assert ann.upload(b"x").status_code == 200


def test_a_flood_of_bytes(server: RunningServer, mallory: Asker, ann: Asker) -> None:
    process = psutil.Process(server.info["pid"])
    before = process.memory_info().rss
    assert mallory.flood(8, b"x" * (50 << 20)) == {413: 8}
    found = mallory.flood(16, b"x" * LARGEST)
    assert found == {200: SIZE // LARGEST, 413: 16 - SIZE // LARGEST}
    assert process.memory_info().rss < before + MOST_GROWTH
    on_disk = sum(path.stat().st_size for path in (server.state / "files").iterdir())
    assert on_disk == SIZE
    assert ann.upload(b"x").status_code == 200


def test_a_flood_of_batches(server: RunningServer, mallory: Asker, ann: Asker) -> None:
    """Whose lines never end, and take all that lines may; a neighbour's requests and batch are answered."""
    file = mallory.upload(lines(500, "hang")).json()["id"]
    found = Counter(mallory.create(file).status_code for _ in range(20))
    assert found == {200: BATCHES, 400: 20 - BATCHES}
    reply = ann.client.post(PATH, json={"model": "parrot", "prompt": "a"})
    assert reply.status_code == 200
    batch = ann.create(ann.upload(lines(3, "one")).json()["id"]).json()["id"]
    for one in mallory.client.get("/v1/batches").json()["data"]:
        assert mallory.client.post(f"/v1/batches/{one['id']}/cancel").status_code == 200

    def is_completed() -> bool:
        return bool(ann.client.get(f"/v1/batches/{batch}").json()["status"] == "completed")

    wait_until(is_completed, "the neighbour's batch ends", server.tail)


def test_files_and_batches_of_others(server: RunningServer, mallory: Asker, ann: Asker) -> None:
    file = ann.upload(lines(1, "a")).json()["id"]
    batch = ann.create(file).json()["id"]
    for method, path in (
        ("GET", f"files/{file}"),
        ("GET", f"files/{file}/content"),
        ("DELETE", f"files/{file}"),
        ("GET", f"batches/{batch}"),
        ("POST", f"batches/{batch}/cancel"),
    ):
        assert mallory.client.request(method, f"/v1/{path}").status_code == 404
    assert mallory.create(file).status_code == 404
    for path in ("../store.db", "%2e%2e%2fstore.db", "..%5cstore.db", "a%00b"):
        assert mallory.client.get(f"/v1/files/{path}/content").status_code in (400, 404)
    assert mallory.client.get("/v1/files").json()["data"] == []
    assert mallory.client.get("/v1/batches").json()["data"] == []
