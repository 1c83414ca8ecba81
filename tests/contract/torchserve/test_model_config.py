"""Every key of the yaml, but for those of the modes (test_sequences.py and its neighbours).

contract#model-configyaml
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.torchserve.gates import Gates, gates_of
from tests.contract.torchserve.setup import Setup
from tests.e2e.server import RunningServer, pack_service, wait_until

pytestmark = pytest.mark.e2e

SERVER = Setup(properties="simulate_devices=4\ndefault_response_timeout=77\ndefault_startup_timeout=78\n")


@pytest.fixture
def gates(server: RunningServer, tmp_path: Path, nothing_registered: None) -> Iterator[Gates]:
    with gates_of(server, tmp_path) as gates:
        yield gates


@pytest.fixture(autouse=True)
def clean(nothing_registered: None) -> None:
    """Each case registers its own."""


def registered(server: RunningServer, config: str, workers: int = 0, **arguments: Any) -> dict[str, Any]:
    archive = pack_service("ts/modes_gate", server.store, model="m", config=config)
    reply = server.register(archive, initial_workers=workers, **arguments)
    assert reply.status_code == 200, reply.text
    return server.describe("m")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("batchSize: 7", {"batchSize": 7, "maxBatchDelay": 100}),
        ("maxBatchDelay: 250", {"batchSize": 1, "maxBatchDelay": 250}),
        ("responseTimeout: 33", {"responseTimeout": 33, "startupTimeout": 78}),
        ("startupTimeout: 44", {"responseTimeout": 77, "startupTimeout": 44}),
        ("deviceType: cpu", {"deviceType": "cpu"}),
        ("deviceIds: [2, 1]", {"deviceIds": [2, 1]}),
        ("parallelType: pp\nparallelLevel: 2", {"parallelType": "pp", "parallelLevel": 2}),
        ("parallelType: tp\ntorchrun: {nproc-per-node: 2}", {"parallelType": "tp", "parallelLevel": 2}),
        ("parallelType: tp\nparallelLevel: 4\ntorchrun: {nproc-per-node: 2}", {"parallelLevel": 2}),
        ("parallelType: custom\nparallelLevel: 2", {"parallelType": "custom", "parallelLevel": 2}),
        ("parallelLevel: 2", {"parallelType": "", "parallelLevel": 2}),
        ("maxRetryTimeoutInSec: 9", {"maxRetryTimeoutInSec": 9}),
        ("clientTimeoutInMills: 1500", {"clientTimeoutInMills": 1500}),
        ("jobQueueSize: 6", {"jobQueueStatus": {"remainingCapacity": 6, "pendingRequests": 0}}),
        ("useJobTicket: true", {"useJobTicket": True}),
        ("continuousBatching: true", {"continuousBatching": True}),
        ("batchSize:\nuseJobTicket:", {"batchSize": 1, "useJobTicket": False}),
    ],
)
def test_keys_that_describe_shows(server: RunningServer, config: str, expected: dict[str, Any]) -> None:
    described = registered(server, config)
    assert {name: described[name] for name in expected} == expected


def test_all_of_torchrun(server: RunningServer) -> None:
    torchrun = (
        "{nnodes: 1, nproc-per-node: 2, rdzv-backend: c10d, rdzv-endpoint: 'localhost:1', rdzv-conf: a=b, "
        "monitor-interval: 5, node-rank: 0, OMP_NUMBER_THREADS: 3}"
    )
    described = registered(server, f"parallelType: tp\ntorchrun: {torchrun}")
    assert (described["parallelType"], described["parallelLevel"]) == ("tp", 2)


def test_workers_of_the_yaml_beat_the_call(server: RunningServer) -> None:
    described = registered(server, "minWorkers: 2\nmaxWorkers: 3", workers=1)
    assert (described["minWorkers"], described["maxWorkers"], len(described["workers"])) == (2, 3, 2)


def test_min_workers_alone(server: RunningServer, nothing_registered: None) -> None:
    """TorchServe uses it only beside maxWorkers; here it counts, and is the most, too."""
    described = registered(server, "minWorkers: 2", workers=1)
    assert (described["minWorkers"], described["maxWorkers"], len(described["workers"])) == (2, 2, 2)


@pytest.mark.parametrize("config", ["minWorkers: 0\nmaxWorkers: 3", "maxWorkers: 3"])
def test_without_a_minimum_the_call_decides(server: RunningServer, config: str) -> None:
    described = registered(server, config, workers=1)
    assert (described["minWorkers"], described["maxWorkers"], len(described["workers"])) == (1, 1, 1)


def test_arguments_beat_the_yaml(server: RunningServer) -> None:
    """TorchServe lets the time-outs of the yaml win, given or not."""
    config = "batchSize: 7\nmaxBatchDelay: 250\nresponseTimeout: 33\nstartupTimeout: 44"
    asked = {"batch_size": 3, "max_batch_delay": 5, "response_timeout": 6, "startup_timeout": 60}
    described = registered(server, config, **asked)
    shown = [described[name] for name in ("batchSize", "maxBatchDelay", "responseTimeout", "startupTimeout")]
    assert shown == [3, 5, 6, 60]


def test_batch_size_reaches_the_handler(gates: Gates) -> None:
    registered(gates.server, "batchSize: 7", workers=1)
    assert gates.ask("m", "a").json()["batch_size"] == 7


def test_all_other_keys_are_the_handlers(gates: Gates) -> None:
    config = (
        "handler: {profile: true, model_path: x}\nmicro_batching: {micro_batch_size: 4}\nmine: [1, two, {a: null}]\n"
        "pt2: {compile: {enable: true, backend: inductor}}\npippy: {rpc_timeout: 1800}\ndeepspeed: {config: ds.json}\n"
    )
    registered(gates.server, config, workers=1)
    assert gates.ask("m", "a").json()["config"] == {
        "handler": {"profile": True, "model_path": "x"},
        "micro_batching": {"micro_batch_size": 4},
        "mine": [1, "two", {"a": None}],
        "pt2": {"compile": {"enable": True, "backend": "inductor"}},
        "pippy": {"rpc_timeout": 1800},
        "deepspeed": {"config": "ds.json"},
    }


@pytest.mark.parametrize(("config", "gpu_id", "gpu"), [("deviceType: cpu", None, False), ("deviceType: gpu", 0, True)])
def test_device_types(gates: Gates, config: str, gpu_id: int | None, gpu: bool) -> None:
    """`gpu` means npu; the number is that inside what the process sees."""
    (worker,) = registered(gates.server, config, workers=1)["workers"]
    assert (gates.ask("m", "a").json()["gpu_id"], worker["gpu"]) == (gpu_id, gpu)


def test_device_ids_that_are_not_there(server: RunningServer) -> None:
    """TorchServe ignores the whole list; here the worker that would need them is refused, by name."""
    archive = pack_service("ts/modes_gate", server.store, model="m", config="deviceIds: [1, 9]")
    reply = server.register(archive)
    assert reply.status_code == 500
    assert "deviceIds: [1, 9] names device 9, and this server has devices 0 to 3." in reply.json()["message"]
    assert server.management.get("/models/m").status_code == 404
    assert server.register(archive, initial_workers=0).status_code == 200
    assert server.management.put("/models/m?min_worker=1&synchronous=true").status_code == 500
    described = server.describe("m")
    assert (described["minWorkers"], described["workers"]) == (0, [])


def test_client_timeout(gates: Gates) -> None:
    """TorchServe drops the request; here it is answered."""
    registered(gates.server, "clientTimeoutInMills: 100", workers=1)

    def begun() -> bool:
        """On a busy machine its time may be over before its handler has it."""
        reply = gates.ask("m", "a", free=False)
        assert (reply.status_code, reply.json()["type"]) == (504, "RequestTimeoutException")
        return (gates.folder / "begun-a").exists()

    wait_until(begun, "a has begun", gates.server.tail)


def test_a_window_of_retries_that_is_over_at_once(gates: Gates) -> None:
    registered(gates.server, "maxRetryTimeoutInSec: 0", workers=1)
    assert gates.ask("m", "a", crash=3).status_code == 500
    wait_until(lambda: gates.server.describe("m")["state"] == "FAILED", "it is given up", gates.server.tail)
    assert gates.server.inference.get("/ping").status_code == 500


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("batchSize: eight", "m-1.0-config.yaml: batchSize: 'eight' is not an integer of 1 or more"),
        ("useJobTicket: 'yes'", "useJobTicket: 'yes' is not true or false"),
        ("deviceIds: 3", "deviceIds: 3 is not a list of device numbers"),
        ("parallelType: dp", "parallelType: 'dp' is not one of pp, tp, pptp, custom"),
        ("torchrun: 2", "torchrun: 2 is not a mapping"),
        ("minWorkers: 3\nmaxWorkers: 2", "minWorkers: 3 is more than maxWorkers: 2"),
        ("batchSize: [1", "line 2, column 1"),
        ("- 1", "mapping"),
    ],
)
def test_what_cannot_be_meant_is_refused(server: RunningServer, config: str, reason: str) -> None:
    """TorchServe warns and takes the default, and swallows what is not YAML."""
    archive = unchecked(server.store, config)
    reply = server.register(archive)
    assert (reply.status_code, reply.json()["type"]) == (400, "InvalidModelException")
    assert reason in reply.json()["message"], reply.json()["message"]
    assert server.management.get("/models/m").status_code == 404


def test_a_key_that_is_nearly_one_is_said_in_the_log(server: RunningServer) -> None:
    registered(server, "batchsize: 4")
    said = [line.get("message", "") for line in server.log_lines()]
    assert any("batchsize: is not a known key and is ignored; did you mean batchSize?" in line for line in said)
    assert server.describe("m")["batchSize"] == 1


def unchecked(store: Path, config: str) -> Path:
    """A folder with a config that msx-archiver would refuse to pack."""
    archive = pack_service("ts/modes_gate", store, model="m", config="batchSize: 1\n")
    folder = store / "unchecked"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    (folder / "m-1.0-config.yaml").write_text(config + "\n")
    for digests in (folder / "MAR-INF").glob("*"):
        if digests.name != "MANIFEST.json":
            digests.unlink()
    return folder
