"""One bad request never fails its neighbours, clients that left take no place, and many requests at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import WATCHDOG, RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

FOREVER = 60_000
"""ms: a test that waited for it would run into its watchdog."""

MODELS = {
    "fixed": f"batchSize: 8\nmaxBatchDelay: {FOREVER}\nbatchingPolicy: fixed",
    "fixed_soon": "batchSize: 8\nmaxBatchDelay: 200\nbatchingPolicy: fixed",
    "together": f"batchSize: 8\nmaxBatchDelay: {FOREVER}\nbatchingPolicy: fixed\nisolateBatchErrors: false",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("batches")
    store = new_store(folder)
    for name, config in MODELS.items():
        pack_service("batch", store, model=name, config=config)
    pack_service("async_echo", store, config="maxConcurrent: 4")
    pack_service("echo", store, model="two", config="minWorkers: 2\nmaxWorkers: 2\nbatchSize: 4\njobQueueSize: 300")
    models = [f"{name}.mar" for name in [*MODELS, "async_echo", "two"]]
    with run_server(folder, "--models", *models) as running:
        yield running


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(64) as threads:
        yield threads


def together(
    server: RunningServer, pool: ThreadPoolExecutor, model: str, orders: list[dict[str, Any]]
) -> list[httpx.Response]:
    return list(pool.map(lambda order: server.predict(model, order), orders))


def eight(**bad: str) -> list[dict[str, Any]]:
    return [{"n": n, **(bad if n == 3 else {})} for n in range(8)]


def wait_for(server: RunningServer, model: str, running: int, queued: int) -> None:
    """Wait until so many run and are queued; a batch of the queued may already be in the worker's socket."""

    def there() -> bool:
        in_flight = server.metric("msx_requests_in_flight", model=model)
        return in_flight >= running and in_flight + server.metric("msx_queue_depth", model=model) == running + queued

    wait_until(there, f"{running} run and {queued} wait", server.tail)


# -- one bad request --


def test_bad_item(server: RunningServer, pool: ThreadPoolExecutor) -> None:
    replies = together(server, pool, "fixed", eight(bad="item"))
    assert_one_refused(replies, batch=8)


def test_batch_that_raises(server: RunningServer, pool: ThreadPoolExecutor) -> None:
    """Each request is run alone."""
    replies = together(server, pool, "fixed", eight(bad="raise"))
    assert_one_refused(replies, batch=1)


def assert_one_refused(replies: list[httpx.Response], batch: int) -> None:
    assert [reply.status_code for reply in replies] == [200] * 3 + [400] + [200] * 4
    assert [reply.json() for n, reply in enumerate(replies) if n != 3] == [
        {"n": n, "batch": batch} for n in range(8) if n != 3
    ]
    assert replies[3].json() == {
        "code": 400,
        "type": "InternalServerException",
        "message": "body: expected anything but bad",
    }


def test_without_isolation_all_fail(server: RunningServer, pool: ThreadPoolExecutor) -> None:
    replies = together(server, pool, "together", eight(bad="raise"))
    assert [reply.status_code for reply in replies] == [400] * 8
    by_item = together(server, pool, "together", eight(bad="item"))
    assert_one_refused(by_item, batch=8)


# -- when a batch leaves --


def held(server: RunningServer, pool: ThreadPoolExecutor, gate: Path, model: str) -> Future[httpx.Response]:
    return pool.submit(server.predict, model, {"n": 0, "hold": str(gate)})


def test_clients_that_left_take_no_place_in_a_batch(
    server: RunningServer, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """By the fixed policy nothing stands in the worker's socket, where it would count as running."""
    first = held(server, pool, tmp_path / "go", "fixed_soon")
    wait_for(server, "fixed_soon", running=1, queued=0)
    leaving = httpx.Client(base_url=server.info["inference"], timeout=httpx.Timeout(WATCHDOG, read=0.2))
    with leaving:
        for n in range(3):
            with pytest.raises(httpx.ReadTimeout):
                leaving.post("/predictions/fixed_soon", json={"n": 100 + n})
    wait_for(server, "fixed_soon", running=1, queued=0)
    others = [pool.submit(server.predict, "fixed_soon", {"n": n}) for n in range(1, 4)]
    wait_for(server, "fixed_soon", running=1, queued=3)
    (tmp_path / "go").touch()
    assert first.result().status_code == 200
    assert [other.result().json() for other in others] == [{"n": n, "batch": 3} for n in range(1, 4)]


def test_two_hundred_at_once(server: RunningServer) -> None:
    """Each is answered once, with its own body."""
    bodies = [f"request {n} ".encode() * (n % 50 + 1) for n in range(200)]
    limits = httpx.Limits(max_connections=200)
    before = server.metric("msx_requests_total", model="two", code="200")
    with (
        httpx.Client(base_url=server.info["inference"], limits=limits, timeout=30) as client,
        ThreadPoolExecutor(200) as pool,
    ):

        def ask(n: int) -> httpx.Response:
            return client.post("/predictions/two", content=bodies[n], headers={"x-request-id": f"id-{n}"})

        replies = list(pool.map(ask, range(200)))
    assert [reply.content for reply in replies] == bodies
    assert [reply.headers["x-request-id"] for reply in replies] == [f"id-{n}" for n in range(200)]
    assert server.metric("msx_requests_total", model="two", code="200") - before == 200


def test_async_handler_takes_many_at_once(server: RunningServer, pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    """Up to maxConcurrent; the others wait in the queue."""
    mark, gate = tmp_path / "mark", tmp_path / "go"
    order = {"hold": str(gate), "mark": str(mark)}
    slow = [pool.submit(server.predict, "async_echo", order) for _ in range(6)]
    wait_for(server, "async_echo", running=4, queued=2)
    wait_until(lambda: mark.exists() and len(mark.read_text().split()) == 4, "four have begun", server.tail)
    assert server.metric("msx_requests_in_flight", model="async_echo") == 4
    gate.touch()
    assert [future.result().status_code for future in slow] == [200] * 6
    lines = mark.read_text().split()
    assert lines[:4] == ["started"] * 4
    assert (lines.count("started"), lines.count("done")) == (6, 6)
