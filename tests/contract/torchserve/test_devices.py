"""Which worker gets which devices. They are simulated; the round robin starts at device 0 here.

contract#devices
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import RunningServer, pack_service

pytestmark = pytest.mark.e2e

MODELS = {
    "first": "",
    "second": "",
    "chosen": "deviceIds: [3, 1]\n",
    "cpu": "deviceType: cpu\n",
    "pairs": "parallelType: custom\nparallelLevel: 2\n",
    "listed": "parallelType: custom\nparallelLevel: 2\ndeviceIds: [3, 2, 1, 0]\n",
    "wide": "parallelType: custom\nparallelLevel: 5\n",
    "ranks": "parallelType: tp\nparallelLevel: 2\n",
}


def prepare(store: Path) -> None:
    for model, config in MODELS.items():
        pack_service("env", store, model=model, config=config)


SERVER = Setup(prepare=prepare, properties="simulate_devices=4\n")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[RunningServer]:
    """The global counter is the server's: a case about it has one of its own."""
    with serving(SERVER, tmp_path) as server:
        yield server


def register(server: RunningServer, model: str, workers: int) -> dict[str, Any]:
    reply = server.register(Path(f"{model}.mar"), initial_workers=workers)
    assert reply.status_code == 200, reply.text
    return server.describe(model)


def scale(server: RunningServer, model: str, workers: int) -> None:
    reply = server.management.put(f"/models/{model}?min_worker={workers}&max_worker={workers}&synchronous=true")
    assert reply.status_code == 200, reply.text


def devices(server: RunningServer, model: str) -> list[str | None]:
    return [worker.get("devices") for worker in server.describe(model)["workers"]]


def test_one_counter_for_all_models(fresh: RunningServer) -> None:
    """It goes on over models and scalings, and passes devices that others are on; a restart keeps the device."""
    register(fresh, "first", 2)
    register(fresh, "second", 1)
    assert (devices(fresh, "first"), devices(fresh, "second")) == (["0", "1"], ["2"])
    scale(fresh, "second", 3)
    assert devices(fresh, "second") == ["2", "3", "0"]
    before = fresh.describe("first")["workers"][1]
    fresh.kill_worker(before["pid"], "first")
    after = fresh.describe("first")["workers"][1]
    assert (after["devices"], after["id"], after["generation"]) == ("1", before["id"], 2)
    scale(fresh, "second", 1)
    scale(fresh, "second", 2)
    assert devices(fresh, "second") == ["2", "3"]


def test_the_handler_sees_its_device(fresh: RunningServer) -> None:
    """TorchServe leaves the visible devices as they are, and tells the number; here the process sees its own alone."""
    register(fresh, "first", 1)
    register(fresh, "second", 1)
    seen = fresh.predict("second", b"x").json()
    assert (seen["device_id"], seen["environ"]["ASCEND_RT_VISIBLE_DEVICES"]) == (0, "1")


def test_device_ids_have_a_counter_of_their_own(server: RunningServer, nothing_registered: None) -> None:
    """From the first that is listed; more workers wrap around; it goes on after scaling."""
    described = register(server, "chosen", 3)
    assert described["deviceIds"] == [3, 1]
    assert devices(server, "chosen") == ["3", "1", "3"]
    scale(server, "chosen", 1)
    scale(server, "chosen", 2)
    assert devices(server, "chosen") == ["3", "1"]


def test_a_model_for_the_cpu(server: RunningServer, nothing_registered: None) -> None:
    described = register(server, "cpu", 1)
    assert (described["deviceType"], devices(server, "cpu")) == ("cpu", [None])
    seen = server.predict("cpu", b"x").json()
    assert (seen["device_id"], seen["environ"]["ASCEND_RT_VISIBLE_DEVICES"]) == (None, "")


def test_parallel_level_takes_slices(server: RunningServer, nothing_registered: None) -> None:
    """`custom` is one process with several devices. It needs no asyncCommunication here."""
    register(server, "pairs", 2)
    assert devices(server, "pairs") == ["0,1", "2,3"]
    assert server.predict("pairs", b"x").json()["environ"]["ASCEND_RT_VISIBLE_DEVICES"] in ("0,1", "2,3")


def test_slices_of_a_list(server: RunningServer, nothing_registered: None) -> None:
    """In the list's order; each slice is ascending, as the driver demands."""
    register(server, "listed", 2)
    assert devices(server, "listed") == ["2,3", "0,1"]


def test_every_rank_sees_the_devices_of_its_group(server: RunningServer, nothing_registered: None) -> None:
    register(server, "ranks", 1)
    (worker,) = server.describe("ranks")["workers"]
    assert (worker["devices"], [rank["rank"] for rank in worker["ranks"]]) == ("0,1", [0, 1])
    environ = server.predict("ranks", b"x").json()["environ"]
    assert (environ["WORLD_SIZE"], environ["LOCAL_RANK"], environ["ASCEND_RT_VISIBLE_DEVICES"]) == ("2", "0", "0,1")


def test_workers_are_capped_by_the_capacity(server: RunningServer, nothing_registered: None) -> None:
    """The reply states what was asked for."""
    reply = server.register(Path("pairs.mar"), initial_workers=3)
    assert reply.json()["status"].endswith("registered with 3 initial workers")
    described = server.describe("pairs")
    assert (described["minWorkers"], described["maxWorkers"], len(described["workers"])) == (2, 2, 2)


def test_too_few_devices(server: RunningServer, nothing_registered: None) -> None:
    """TorchServe: No enough gpu devices for model:wide parallelLevel:5."""
    reply = server.register(Path("wide.mar"), initial_workers=1)
    assert (reply.status_code, reply.json()["type"]) == (500, "WorkerInitializationException")
    expected = "Failed to start workers for model wide version: 1.0. wide:1.0 needs 5 devices, and this server has 4."
    assert reply.json()["message"] == expected
    assert server.management.get("/models/wide").status_code == 404


def test_groups_share_devices_with_workers_but_not_with_each_other(
    server: RunningServer, nothing_registered: None
) -> None:
    """Unlike TorchServe's, where all share: it waits, and the holders are named."""
    register(server, "ranks", 1)
    register(server, "first", 3)
    assert set(devices(server, "first")) == {"2", "3"}
    register(server, "pairs", 1)
    assert devices(server, "pairs") == ["2,3"]
    reply = server.register(Path("listed.mar"), initial_workers=1)
    assert reply.status_code == 202
    assert "listed:1.0 needs 2 devices that no other group has, and none of 4 devices is left" in reply.json()["status"]
    assert "0 and 1 are held by ranks:1.0" in reply.json()["status"]
    assert server.describe("listed")["state"] == "WAITING"


def test_an_inherited_list_is_mapped(tmp_path: Path) -> None:
    """TorchServe hands out 0 and 1, which are the wrong ones."""
    properties = "simulate_devices=4\nnumber_of_gpu=2\n"
    setup = Setup(prepare=prepare, properties=properties, env={"ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7"})
    with serving(setup, tmp_path) as server:
        register(server, "first", 3)
        assert devices(server, "first") == ["4", "5", "4"]


def test_without_devices_nothing_is_capped(tmp_path: Path) -> None:
    """`number_of_gpu` is the most that are used: it makes none."""
    with serving(Setup(prepare=prepare, properties="number_of_gpu=4\n"), tmp_path) as server:
        described = register(server, "pairs", 3)
        assert (len(described["workers"]), described["deviceType"]) == (3, "cpu")
        assert "ASCEND_RT_VISIBLE_DEVICES" not in server.predict("pairs", b"x").json()["environ"]
        warnings = [line["message"] for line in server.log_lines() if line.get("logger") == "msx.devices"]
        assert [text.partition(":")[0] for text in warnings] == [
            "number_of_npu=4 (number_of_gpu) is the most devices that are used, and none were found"
        ]
