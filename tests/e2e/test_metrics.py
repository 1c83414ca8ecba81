"""The figures after traffic that the test knows."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.prometheus import samples

pytestmark = pytest.mark.e2e

HOST = socket.gethostname()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("metrics")
    store = new_store(folder)
    for name in ("echo", "metrics", "prediction_error", "crash", "raises_in_init", "stream_generator"):
        pack_service(name, store)
    pack_service("batch", store, config="batchSize: 8\nmaxBatchDelay: 60000\nbatchingPolicy: fixed")
    pack_service("batch", store, model="held")
    models = ["echo.mar", "metrics.mar", "prediction_error.mar", "crash.mar", "batch.mar", "held.mar"]
    models.append("stream_generator.mar")
    with run_server(folder, "--models", *models) as running:
        yield running


def test_requests(server: RunningServer) -> None:
    for _ in range(3):
        server.predict("echo", b"x")
    server.predict("echo/1.0", b"x")
    own = {"model": "echo", "version": "1.0"}
    assert server.metric("msx_requests_total", **own, code="200") == 4
    for name in ("msx_request_seconds", "msx_queue_seconds", "msx_first_chunk_seconds"):
        assert server.metric(f"{name}_count", **own) == 4
        assert 0 < server.metric(f"{name}_sum", **own) < 60
        assert server.metric(f"{name}_bucket", **own, le="+Inf") == 4
    assert server.metric("msx_batch_seconds_count", **own) == 4
    assert server.metric("msx_batch_size_sum", **own) == 4


def test_codes(server: RunningServer) -> None:
    for status in (400, 400, 503):
        server.predict("prediction_error", str(status).encode())
    assert server.metric("msx_requests_total", model="prediction_error", code="400") == 2
    assert server.metric("msx_requests_total", model="prediction_error", code="503") == 1
    server.management.put("/models/prediction_error", params={"min_worker": 0, "synchronous": "true"})
    server.predict("prediction_error", b"400")
    assert server.metric("msx_requests_total", model="prediction_error", code="503") == 2
    assert server.metric("msx_workers_wanted", model="prediction_error") == 0


def test_batches(server: RunningServer) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: server.predict("batch", {"n": n}), range(8)))
    assert server.metric("msx_batch_size_count", model="batch") == 1
    assert server.metric("msx_batch_size_sum", model="batch") == 8
    assert server.metric("msx_batch_size_bucket", model="batch", le="4.0") == 0
    assert server.metric("msx_batch_size_bucket", model="batch", le="8.0") == 1


def test_queue(server: RunningServer, tmp_path: Path) -> None:
    gate = tmp_path / "go"
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(server.predict, "held", {"n": n, "hold": str(gate)}) for n in range(3)]
        wait_until(lambda: server.metric("msx_queue_depth", model="held") == 2, "two wait", server.tail)
        assert server.metric("msx_requests_in_flight", model="held") == 1
        counts = [server.metric(f"msx_requests_{what}", model="held") for what in ("queued", "running")]
        assert counts == [2, 1]
        aged = server.metric("msx_queue_oldest_seconds", model="held")
        wait_until(lambda: server.metric("msx_queue_oldest_seconds", model="held") > aged > 0, "it gets older")
        gate.touch()
        assert [future.result().status_code for future in asked] == [200] * 3
    assert server.metric("msx_queue_depth", model="held") == 0
    assert server.metric("msx_queue_oldest_seconds", model="held") == 0
    assert server.metric("msx_queue_seconds_sum", model="held") >= aged


def test_workers(server: RunningServer) -> None:
    assert server.metric("msx_model_state", model="crash", state="READY") == 1
    assert server.metric("msx_model_state", model="crash") == 1
    assert server.metric("msx_workers_ready", model="crash") == server.metric("msx_workers_wanted", model="crash") == 1
    server.predict("crash", b"kill")
    assert server.metric("msx_requests_total", model="crash", code="507") == 1
    assert server.predict("crash", b"next").content == b"next"
    assert server.metric("msx_worker_restarts_total", model="crash", version="1.0") == 1
    [worker] = server.describe("crash")["workers"]
    memory = server.metric("msx_worker_memory_bytes", model="crash", worker=worker["id"], rank="0")
    assert memory == pytest.approx(psutil.Process(worker["pid"]).memory_info().rss, rel=0.2)


def test_failed_model(server: RunningServer) -> None:
    archive = pack_service("raises_in_init", server.store, model="broken", config="maxRetryTimeoutInSec: 0")
    server.register(archive, synchronous="false")
    failed = lambda: server.metric("msx_model_state", model="broken", state="FAILED") == 1  # noqa: E731
    wait_until(failed, "the state is FAILED", server.tail)
    assert server.metric("msx_model_state", model="broken") == 1
    server.management.delete("/models/broken")
    assert server.metric("msx_model_state", model="broken") == 0, "a model that is gone has no state"


def test_server_process(server: RunningServer) -> None:
    actual = psutil.Process(server.process.pid).memory_info().rss
    assert server.metric("process_resident_memory_bytes") == pytest.approx(actual, rel=0.2)


def test_handler_metrics(server: RunningServer) -> None:
    for _ in range(2):
        assert server.predict("metrics", b"").text == "emitted"
    wait_until(lambda: server.metric("tokens_total", kind="prompt") == 6, "the samples have come", server.tail)
    model = {"ModelName": "metrics"}
    assert server.metric("tokens_total", **model) == 6
    assert server.metric("slots_in_use", **model) == 1
    assert server.metric("step_time_count", **model) == 2
    assert server.metric("step_time_sum", **model) == 3.0
    assert [server.metric("read_time_bucket", **model, disk="a", le=le) for le in ("1.0", "2.0", "+Inf")] == [2, 2, 4]
    assert server.metric("read_time_sum", **model, disk="a") == 7.0
    assert server.metric("Calls", **model, Level="Model") == 2
    assert server.metric("Work", **model) == 2.5
    assert server.metric("Weights", **model) == 7
    assert server.metric("Fill", **model) == 50
    assert server.metric("Trouble", Level="Error") == 2


def test_each_worker_has_its_gauges_and_they_go_with_the_model(server: RunningServer) -> None:
    """TorchServe's load times of workers, too."""
    archive = pack_service("metrics", server.store, model="twins")
    server.register(archive, initial_workers="2")
    twins = {"ModelName": "twins", "ModelVersion": "1.0"}
    names = {f"W-{worker['id']}-twins_1.0" for worker in server.describe("twins")["workers"]}

    def gauges() -> dict[str, float]:
        found = samples(server.metrics.get("/metrics").text)
        return {
            own["WorkerName"]: value
            for name, own, value in found
            if name == "slots_in_use" and twins.items() <= own.items()
        }

    wait_until(lambda: gauges().keys() == names, "both workers have told", server.tail)
    assert server.predict("twins", b"").text == "emitted"
    wait_until(lambda: sorted(gauges().values()) == [0, 1], "the one that answered has told", server.tail)
    assert server.metric("step_time_bucket", **twins, le="1.0") == 0
    assert server.metric("step_time_bucket", **twins, le="2.0") == 1
    assert "# HELP slots_in_use Slots that hold a request\n" in server.metrics.get("/metrics").text
    server.management.put("/models/twins", params={"min_worker": 1, "max_worker": 1, "synchronous": "true"})
    assert len(gauges()) == 1
    assert server.management.delete("/models/twins").status_code == 200
    assert [line for line in server.metrics.get("/metrics").text.splitlines() if 'ModelName="twins"' in line] == []
    assert "-twins_1.0" not in server.metrics.get("/metrics").text


def test_openmetrics_of_a_server_that_has_served(server: RunningServer) -> None:
    """All of it, by the strict parser; a client that does not ask for it gets what it got before."""
    assert server.predict("stream_generator", {"count": 3}).text == "1\n2\n3\n"
    assert server.predict("metrics", b"").text == "emitted"
    wait_until(lambda: server.metric("tokens_total", kind="prompt") > 0, "the samples have come", server.tail)
    own = "application/openmetrics-text"
    reply = server.metrics.get("/metrics", headers={"accept": f"{own};version=1.0.0,text/plain;q=0.5,*/*;q=0.1"})
    assert reply.headers["content-type"] == f"{own}; version=1.0.0; charset=utf-8"
    assert reply.headers["content-encoding"] == "gzip"
    families = text_string_to_metric_families(reply.text)  # type: ignore[no-untyped-call]
    told = {family.name: family for family in families}
    plain = server.metrics.get("/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert {sample.name for family in told.values() for sample in family.samples} == {
        name for name, _, _ in samples(plain.text)
    }
    kinds = {name: told[name].type for name in ("tokens", "slots_in_use", "step_time", "Calls", "Requests2XX")}
    assert list(kinds.values()) == ["counter", "gauge", "histogram", "unknown", "unknown"]
    streamed = [one for one in told["msx_first_chunk_seconds"].samples if one.labels["model"] == "stream_generator"]
    assert streamed
