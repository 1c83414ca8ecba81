"""Which NPU a worker sees: simulated ones, on a machine without any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = pytest.mark.e2e


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    pack_env(tmp_path)
    with run_server(tmp_path, properties="number_of_npu=4\n") as running:
        yield running


def pack_env(folder: Path) -> None:
    store = new_store(folder)
    pack_service("env", store, model="first")
    pack_service("env", store, model="second")
    pack_service("env", store, model="chosen", config="deviceIds: [3, 1]\n")
    pack_service("env", store, model="absent", config="deviceIds: [9]\n")
    pack_service("env", store, model="on_cpu", config="deviceType: cpu\n")


def register(server: RunningServer, model: str, workers: int) -> None:
    reply = server.register(Path(f"{model}.mar"), initial_workers=workers)
    assert reply.status_code == 200, reply.text


def scale(server: RunningServer, model: str, workers: int) -> None:
    assert server.management.put(f"/models/{model}?min_worker={workers}&synchronous=true").status_code == 200


def devices(server: RunningServer, model: str) -> list[str | None]:
    return [worker.get("devices") for worker in server.describe(model)["workers"]]


def test_round_robin_over_models_and_scalings(server: RunningServer) -> None:
    register(server, "first", 2)
    register(server, "second", 1)
    assert (devices(server, "first"), devices(server, "second")) == (["0", "1"], ["2"])
    scale(server, "first", 4)
    assert devices(server, "first") == ["0", "1", "3", "0"]
    scale(server, "first", 1)
    scale(server, "second", 2)
    assert (devices(server, "first"), devices(server, "second")) == (["0"], ["2", "1"])


def test_the_worker_sees_what_describe_says(server: RunningServer) -> None:
    register(server, "first", 1)
    register(server, "second", 1)
    answer = server.predict("second", b"x").json()
    assert answer["environ"]["ASCEND_RT_VISIBLE_DEVICES"] == "1"
    assert (answer["device_id"], answer["environ"]["DEVICE_ID"]) == (0, "0")
    described = server.describe("second")
    worker = described["workers"][0]
    assert (described["deviceType"], worker["devices"], worker["gpu"]) == ("npu", "1", True)
    assert answer["pid"] == worker["pid"]


def test_device_ids(server: RunningServer) -> None:
    register(server, "chosen", 3)
    described = server.describe("chosen")
    assert described["deviceIds"] == [3, 1]
    assert devices(server, "chosen") == ["3", "1", "3"]


def test_a_device_that_is_not_there(server: RunningServer) -> None:
    """Neither a registration nor a scaling leaves anything of it."""
    reply = server.register(Path("absent.mar"), initial_workers=1)
    assert (reply.status_code, reply.json()["message"]) == (
        500,
        "Failed to start workers for model absent version: 1.0. "
        "deviceIds: [9] names device 9, and this server has devices 0 to 3.",
    )
    assert server.management.get("/models/absent").status_code == 404
    register(server, "absent", 0)
    assert server.management.put("/models/absent?min_worker=1&synchronous=true").status_code == 500
    described = server.describe("absent")
    assert (described["minWorkers"], described["workers"]) == (0, [])


def test_a_model_for_the_cpu(server: RunningServer) -> None:
    register(server, "on_cpu", 1)
    described = server.describe("on_cpu")
    assert (described["deviceType"], devices(server, "on_cpu")) == ("cpu", [None])
    answer = server.predict("on_cpu", b"x").json()
    assert "ASCEND_RT_VISIBLE_DEVICES" not in answer["environ"]
    assert answer["device_id"] is None


def test_a_worker_keeps_its_device_when_it_starts_again(server: RunningServer) -> None:
    register(server, "first", 1)
    register(server, "second", 1)
    before = server.describe("second")["workers"][0]
    server.kill_worker(before["pid"], "second")
    after = server.describe("second")["workers"][0]
    assert (after["devices"], after["id"], after["generation"]) == ("1", before["id"], 2)


def test_an_inherited_list_is_mapped(tmp_path: Path) -> None:
    pack_env(tmp_path)
    env = {"ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7"}
    with run_server(tmp_path, properties="number_of_npu=2\n", env=env) as server:
        register(server, "first", 3)
        assert devices(server, "first") == ["4", "5", "4"]
        register(server, "chosen", 0)
        assert server.management.put("/models/chosen?min_worker=1&synchronous=true").status_code == 500
