"""A second worker of a model on one device. Devices are simulated, or listed by a tool `npu-smi` that is not real."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.e2e.test_autoscaling import WAITS, folder_archive
from tests.npu_smi import FakeNpuSmi

pytestmark = pytest.mark.e2e

FOLLOWS = "workersPerDevice: 2\nautoscaling:\n  targetQueueTime: 50\n  upDelay: 0.5\n  downDelay: 1\n  idleTime: 600\n"


@contextmanager
def under_load(server: RunningServer) -> Iterator[None]:
    """Eight clients ask the model `waits`, one request after the other."""
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            assert server.predict("waits", b"x").text == "waited"

    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(ask) for _ in range(8)]
        try:
            yield
        finally:
            enough.set()
        for one in asked:
            one.result()


def devices(server: RunningServer, model: str = "waits") -> list[str | None]:
    workers = server.describe(model)["workers"]
    return [worker.get("devices") for worker in workers if worker["status"] == "READY"]


def test_it_comes_while_requests_wait_and_the_device_has_time_left(tmp_path: Path) -> None:
    folder_archive(new_store(tmp_path), "waits", WAITS, FOLLOWS)
    tool = FakeNpuSmi(tmp_path / "smi", ["0"])
    tool.set_busy(95)
    properties = "device_check_interval=0.05\n"
    with run_server(tmp_path, "--models", "waits", properties=properties, env=tool.environment) as server:
        assert devices(server) == ["0"]
        with under_load(server):
            wait_until(lambda: "below 80 %" in reason(server), "the device is busy", server.tail)
            assert devices(server) == ["0"]
            tool.set_busy(60)
            wait_until(lambda: devices(server) == ["0", "0"], "two are on it", server.tail)
        left = "62218 of 65536 MB of its memory are left"
        words = f"waits:1 has 2 workers on device 0, each with a copy of the model ({left})"
        assert words in [line.get("message") for line in server.log_lines()]
        wait_until(lambda: devices(server) == ["0"], "one is left", server.tail)


def reason(server: RunningServer) -> str:
    found: str = server.describe("waits")["autoscaling"].get("reason", "")
    return found


def test_calls_fill_the_devices_and_no_more(tmp_path: Path) -> None:
    pack_service("env", new_store(tmp_path), model="m", config="workersPerDevice: 2\n")
    with run_server(tmp_path, properties="simulate_devices=2\n") as server:
        assert server.register(Path("m.mar"), initial_workers=3).status_code == 200
        assert devices(server, "m") == ["0", "1", "0"]
        assert server.management.put("/models/m?min_worker=9&synchronous=true").status_code == 200
        described = server.describe("m")
        assert (described["minWorkers"], devices(server, "m")) == (4, ["0", "1", "0", "1"])
        seen = {server.predict("m", b"x").json()["environ"]["ASCEND_RT_VISIBLE_DEVICES"] for _ in range(4)}
        assert seen <= {"0", "1"}
        server.management.put("/models/m?min_worker=2&max_worker=2&synchronous=true")
        assert devices(server, "m") == ["0", "1"]
