"""Rows of one request that are jobs of their own, beside other clients, and methods of a handler."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

ROWS, BATCH = 2000, 32


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("instances")
    config = f"splitInstances: true\nbatchSize: {BATCH}\nmaxBatchDelay: 0\nminWorkers: 2\nmaxWorkers: 2\n"
    config += f"maxEnqueuedInstances: {ROWS}\ngate: {folder / 'gate'}\n"
    pack_service("rows", new_store(folder), config=config)
    with run_server(folder, "--models", "rows.mar") as running:
        yield running


def ask(server: RunningServer, rows: list[object]) -> httpx.Response:
    return server.inference.post("/v1/models/rows:predict", json={"instances": rows})


def test_rows_are_split_over_workers_and_others_take_turns(server: RunningServer) -> None:
    with ThreadPoolExecutor(2) as pool:
        all_rows = pool.submit(ask, server, list(range(ROWS)))
        wait_until(lambda: server.metric("msx_requests_in_flight", model="rows") == 2 * BATCH, "both work", server.tail)
        single = pool.submit(server.predict, "rows", "mine", headers={"content-type": "text/plain"})
        wait_until(lambda: server.metric("msx_queue_depth", model="rows") == 2, "both wait", server.tail)
        assert server.metric("msx_queue_instances", model="rows") == ROWS - 2 * BATCH
        refused = ask(server, list(range(100)))
        assert (refused.status_code, "maxEnqueuedInstances is 2000" in refused.text) == (503, True)
        (server.folder / "gate").touch()
        reply, mine = all_rows.result(), single.result().json()
    predictions = reply.json()["predictions"]
    assert [row["row"] for row in predictions] == list(range(ROWS))
    assert {row["pid"] for row in predictions} == set(server.worker_pids("rows"))
    assert max(row["of"] for row in predictions) == BATCH
    assert mine["call"] == 2  # the next batch of that worker
    assert server.metric("msx_requests_total", model="rows", code="200") == 2


def test_a_bad_row(server: RunningServer) -> None:
    (server.folder / "gate").touch()
    reply = ask(server, [1, "bad", 3])
    assert (reply.status_code, reply.json()["message"]) == (400, "row bad is bad")
    assert ask(server, [7]).json()["predictions"][0]["row"] == 7


def test_a_method(server: RunningServer) -> None:
    assert server.describe("rows")["methods"] == [{"name": "double", "summary": "Twice the number."}]
    for path in ("/predictions/rows:double", "/predictions/rows/1.0:double"):
        reply = server.inference.post(path, json=21)
        assert (reply.status_code, reply.json()) == (200, 42)
    unknown = server.inference.post("/predictions/rows:half", json=21)
    assert (unknown.status_code, unknown.json()["message"]) == (
        404,
        "Model \"rows\" has no method 'half': its methods are double.",
    )
    assert "/predictions/rows:double" in server.inference.get("/openapi.json").json()["paths"]
