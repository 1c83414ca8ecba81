"""Handlers of TorchServe on simulated GPUs, with a torch that only looks as if it computed on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.phrases import worker_died

pytestmark = pytest.mark.e2e

GPUS = [f"GPU-00000000-0000-0000-0000-{number:012}" for number in range(2)]
REASON = (
    "The worker is replaced: no call of torch.cuda in its process succeeds after AcceleratorError: CUDA error: "
    "device-side assert triggered."
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("gpus")
    new_store(folder)
    with run_server(folder, properties="accelerator=nvidia\nsimulate_devices=2\n") as running:
        yield running


def serve(server: RunningServer, model: str, config: str = "") -> None:
    reply = server.register(pack_service("fake_gpu", server.store, model=model, config=config))
    assert reply.status_code == 200, reply.text


def info(server: RunningServer, model: str) -> dict[str, Any]:
    """The handler's answer to what it sees."""
    seen: dict[str, Any] = server.predict(model, b"info").json()
    return seen


def test_a_worker_sees_its_gpu_as_the_first(server: RunningServer) -> None:
    serve(server, "one")
    seen = info(server, "one")
    assert (seen["gpu_id"], seen["device"]) == (0, "cuda:0")
    assert seen["env"] in [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in GPUS], "and nothing of torchrun"


def test_a_worker_on_the_cpu_sees_none(server: RunningServer) -> None:
    serve(server, "cpu", "deviceType: cpu\n")
    assert info(server, "cpu") == {"gpu_id": None, "device": "cpu", "env": {"CUDA_VISIBLE_DEVICES": ""}}


def test_each_rank_of_a_group_takes_the_gpu_of_its_local_rank(server: RunningServer) -> None:
    folder = server.folder / "ranks"
    folder.mkdir()
    serve(server, "group", f"parallelType: tp\nparallelLevel: 2\nfolder: {folder}\n")
    for rank in range(2):
        seen = json.loads((folder / str(rank)).read_text())
        assert (seen["gpu_id"], seen["device"]) == (rank, f"cuda:{rank}")
        assert seen["env"] == {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "CUDA_VISIBLE_DEVICES": ",".join(GPUS),
        }


@pytest.mark.parametrize("config", ["", "batchSize: 4\nmaxBatchDelay: 1\n"], ids=["single", "batches"])
def test_after_an_error_that_lasts_the_worker_is_replaced(server: RunningServer, config: str) -> None:
    """After one that does not, running out of memory, it goes on."""
    model = "lasting" if config else "broken"
    serve(server, model, config)
    before = server.worker_pids(model)
    assert server.predict(model, b"oom").status_code == 507
    assert server.predict(model, b"x").text == "x"
    assert server.worker_pids(model) == before
    reply = server.predict(model, b"assert")
    assert (reply.status_code, reply.json()["message"]) == (500, worker_died(REASON))
    assert server.predict(model, b"y").text == "y"
    wait_until(lambda: server.describe(model)["state"] == "READY", "the model is back", server.tail)
    assert server.worker_pids(model) != before
    ended = [line["message"] for line in server.log_lines() if f"ended: {REASON}" in line.get("message", "")]
    assert ended
