"""Specification from which a generation of a worker is started."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from msx_core.config import parse_model_config
from msx_core.framework_device import FrameworkDevice
from msx_core.servable_start import ServableStart
from msx_core.torch_devices import TorchDevices
from msx_frontend import __version__
from msx_frontend.config import ServerConfig
from msx_frontend.devices.accelerator import Device
from msx_frontend.devices.lease import Lease
from msx_frontend.models.versions import spawn
from msx_frontend.models.versions.model_source import ModelSource
from msx_frontend.models.versions.spawn import Spawner
from msx_frontend.workers.launcher import GroupSpec, RankSpec
from msx_protocol import Load, MetricDeclaration
from tests.frontend.workers.fake_launcher import FakeLauncher

FRAMEWORK = FrameworkDevice("Fake", "libfake.so")
CPU = Lease("m:1.0")
NPU = Lease("m:1.0", (3,), (Device("3", "910B"),), environment={"SEEN": "3"}, framework=FRAMEWORK)


def source_of(config: dict[str, Any], servable: ServableStart | None = None) -> ModelSource:
    return ModelSource(
        servable=servable,
        name="m",
        version="1.0",
        url="m.mar",
        digest="abc",
        model_dir=Path("/models/abc"),
        handler="h.py:run",
        manifest={"model": {}},
        config=parse_model_config(config)[0],
    )


def spec_of(
    config: dict[str, Any] | None = None,
    lease: Lease = CPU,
    env: Any = None,
    servable: ServableStart | None = None,
    number: int = 9000,
    **server: Any,
) -> GroupSpec:
    source = source_of(config or {}, servable)
    spawner = Spawner(ServerConfig(**server), FakeLauncher(), Path("/compiled"), env or {})
    return spawner.spec(source, lease, number, 2)


def only_rank(*args: Any, **options: Any) -> RankSpec:
    (rank,) = spec_of(*args, **options).ranks
    return rank


def test_what_the_worker_is_told() -> None:
    config = {"batchSize": 4, "handler": {"k": 1}}
    sizes: Any = {"max_request_size": 98, "max_response_size": 99, "stream_buffer_size": 1000}
    streams: Any = {"stream_heartbeat": 7.0, "stream_early_head": True}
    assert spec_of(config, **sizes, **streams, decode_input_request=False).load == Load(
        model_name="m",
        model_version="1.0",
        model_dir="/models/abc",
        handler="h.py:run",
        manifest={"model": {}},
        config=config,
        batch_size=4,
        isolate_batch_errors=True,
        device_id=None,
        rank=0,
        local_rank=0,
        world_size=1,
        input_ranks=1,
        cache_dir="/compiled/abc",
        decode_input=False,
        limit_max_image_pixels=True,
        max_request_size=98,
        max_response_size=99,
        stream_credit=1000,
        stream_heartbeat=7.0,
        stream_early_head=True,
        server_version=__version__,
        torch_devices=[TorchDevices("cuda", "GPU", "CUDA_VISIBLE_DEVICES")],
        model_metrics=[
            MetricDeclaration("gauge", name, "ms", ["ModelName", "Level"]) for name in ("HandlerTime", "PredictionTime")
        ],
    )


def test_a_worker_is_told_its_place() -> None:
    source, spawner = source_of({}), Spawner(ServerConfig(), FakeLauncher(), Path("/compiled"), {})
    (rank,) = spawner.spec(source, CPU, 9000, 2, at=3).ranks
    assert rank.load.place == 3


def test_limits() -> None:
    spec = spec_of({"startupTimeout": 7, "responseTimeout": 8, "maxConcurrent": 9, "maxWorkerMemory": 10})
    assert spec.max_memory == 10 << 20
    assert (spec.startup_timeout, spec.response_timeout, spec.max_concurrent) == (7.0, 8.0, 9)


def test_a_device() -> None:
    spec = only_rank(lease=NPU)
    assert spec.load.device_id == 0  # the index among those that the worker sees
    assert spec.env["SEEN"] == "3"
    assert spec.load.framework_device == FRAMEWORK


@pytest.mark.parametrize(
    ("lease", "expected"),
    [(NPU, "3"), (Lease("m:1.0", environment={"SEEN": ""}), ""), (CPU, "7")],
    ids=["its own", "on the CPU", "the server uses no such devices"],
)
def test_the_variable_of_the_devices(lease: Lease, expected: str) -> None:
    """Inherited is only that of devices that the server does not hand out: it may hide them."""
    assert only_rank(lease=lease, env={"SEEN": "7"}).env["SEEN"] == expected


TP2 = {"parallelType": "tp", "parallelLevel": 2}
TWO = Lease(
    "m:1.0", (0, 1), (Device("0", "910B", cores=frozenset({0, 1})), Device("1", "910B", cores=frozenset({1, 900})))
)


def cores_of(config: dict[str, Any], lease: Lease = TWO, **server: Any) -> list[tuple[int, ...]]:
    return [rank.confinement.cores for rank in spec_of(config, lease, **server).ranks]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may use two."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.mark.usefixtures("two_cores")
def test_ranks_run_on_the_cores_near_their_devices_where_that_is_asked_for() -> None:
    assert cores_of({**TP2, "bindCores": True}) == [(0, 1), (1,)], "900 is not the server's to use"
    custom = {"parallelType": "custom", "parallelLevel": 2, "bindCores": True}
    assert cores_of(custom) == [(0, 1)], "a process of several devices"
    assert cores_of(TP2) == [(), ()]
    assert cores_of({"bindCores": True}, CPU) == [()]


@pytest.mark.usefixtures("two_cores")
def test_a_worker_without_near_cores_is_not_bound(caplog: pytest.LogCaptureFixture) -> None:
    far = Lease("m:1.0", (0,), (Device("5", "910B", cores=frozenset({900})),))
    assert cores_of({"bindCores": True}, far) == [()]
    assert cores_of({"bindCores": True}, NPU) == [()]
    assert caplog.messages == [
        "m:1.0 is not bound to cores (bindCores): this server may use none of the cores near device 5",
        "m:1.0 is not bound to cores (bindCores): it is not known which cores are near device 3",
    ]


def test_the_numbers_of_replica_and_generation_are_the_launchers_for_names_of_folders() -> None:
    spec = spec_of()
    assert (spec.worker, spec.generation) == (9000, 2)


def test_items_of_a_sequence_are_not_isolated() -> None:
    assert not spec_of({"sequenceBatching": True, "sequenceMaxIdleMSec": 1000}).load.isolate_batch_errors
    assert not spec_of({"isolateBatchErrors": False}).load.isolate_batch_errors


@pytest.mark.parametrize("section", ["msrun", "torchrun"])
def test_the_environment(section: str) -> None:
    config = {section: {"OMP_NUMBER_THREADS": 2}}
    spec = only_rank(config, env={"A": "1", "B": "2"}, blacklist_env_vars=re.compile("A"))
    assert "A" not in spec.env
    assert spec.env["B"] == "2"
    assert spec.env["OMP_NUM_THREADS"] == "2"
    assert spec.env["PYTHONPATH"] == "/models/abc"
    assert "OMP_NUM_THREADS" not in only_rank().env


def test_several_ranks() -> None:
    spec = spec_of({"msrun": {"nproc-per-node": 4}, "parallelType": "pptp", "parallel": {"tensorParallel": 2}})
    assert [rank.load.rank for rank in spec.ranks] == [0, 1, 2, 3]
    assert {(rank.load.world_size, rank.load.input_ranks) for rank in spec.ranks} == {(4, 2)}
    assert [rank.env["RANK"] for rank in spec.ranks] == ["0", "1", "2", "3"]
    assert not {"MASTER_ADDR", "MASTER_PORT"} & set(spec.ranks[0].env), "where they meet is the launcher's to say"


@pytest.mark.parametrize(
    ("config", "ranks"),
    [
        ({}, []),
        ({"parallelType": "custom", "parallelLevel": 2}, []),
        ({"parallelType": "tp", "parallelLevel": 1}, [("0", "0", "1", "1")]),
        (TP2, [("0", "0", "2", "2"), ("1", "1", "2", "2")]),
        ({"parallelType": "pp", "torchrun": {"nproc-per-node": 2}}, [("0", "0", "2", "2"), ("1", "1", "2", "2")]),
    ],
    ids=["a worker", "custom", "a group of one", "tp", "torchrun"],
)
def test_the_variables_of_torchrun(config: dict[str, Any], ranks: list[tuple[str, ...]]) -> None:
    """A worker of one process has none, as with TorchServe; with a lease of GPUs, each rank sees all of its group."""
    gpus = (Device("GPU-a", "H100"), Device("GPU-b", "H100"))
    lease = Lease("m:1.0", (0, 1), gpus, environment={"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}, torch="cuda")
    spec = spec_of(config, lease)
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    assert [tuple(rank.env[name] for name in names) for rank in spec.ranks if "RANK" in rank.env] == ranks
    assert spec.meets == bool(ranks)
    assert {rank.env["CUDA_VISIBLE_DEVICES"] for rank in spec.ranks} == {"GPU-a,GPU-b"}
    assert [rank.load.device_id for rank in spec.ranks] == [int(one[1]) for one in ranks] or [0]


def test_the_worker_knows_the_declared_metrics(tmp_path: Path) -> None:
    """TorchServe's own file, or that of `metrics_config`."""
    assert [metric.name for metric in only_rank().load.model_metrics] == ["HandlerTime", "PredictionTime"]
    (tmp_path / "metrics.yaml").write_text(
        "model_metrics:\n  gauge:\n    - {name: Size, unit: MB, dimensions: [shard]}\n"
    )
    [metric] = only_rank(metrics_config=tmp_path / "metrics.yaml").load.model_metrics
    assert metric == MetricDeclaration("gauge", "Size", "MB", ["shard"])


@pytest.mark.parametrize(
    ("config", "env", "expected"),
    [
        ({}, {}, "2"),
        ({}, {"OMP_NUM_THREADS": "5"}, "5"),
        ({"mindspore": {"threads": 4}}, {}, None),
        ({"parallelType": "tp", "msrun": {"nproc-per-node": 2}}, {}, "1"),
    ],
)
def test_threads_follow_the_time_that_a_cgroup_gives(
    monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], env: dict[str, str], expected: str | None
) -> None:
    """Where the configuration does not say how many: libraries start one for each core that they may run on."""
    monkeypatch.setattr(spawn, "cores_by_quota", lambda: 2)
    assert spec_of(config, env=env).ranks[0].env.get("OMP_NUM_THREADS") == expected


@pytest.mark.parametrize("handed_on", [False, True])
def test_credentials_of_the_server(handed_on: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    env = {"MSX_API_KEY": "k", "HF_TOKEN": "h", "AWS_DEFAULT_REGION": "r"}
    found = only_rank(env=env, worker_credentials=handed_on).env
    assert [name for name in env if name in found] == (["HF_TOKEN"] if handed_on else []) + ["AWS_DEFAULT_REGION"]
    said = "workers do not inherit HF_TOKEN (worker_credentials=true hands them on)"
    assert (said in caplog.text) == (not handed_on)


def test_workers_of_a_start_script_know_their_device() -> None:
    """By MindSpore Serving's variable, and what the script said of the servable."""
    start, ids = ServableStart(directory="/servables"), {"deviceIds": [3, 5]}
    rank = only_rank(ids, NPU, servable=start)
    assert (rank.env["SERVING_DEVICE_ID"], rank.load.servable) == ("3", start)
    assert {only_rank(ids, servable=start, number=number).env["SERVING_DEVICE_ID"] for number in (9, 10)} == {"3", "5"}
    assert "SERVING_DEVICE_ID" not in only_rank(servable=start).env
    assert "SERVING_DEVICE_ID" not in only_rank(ids, NPU).env
