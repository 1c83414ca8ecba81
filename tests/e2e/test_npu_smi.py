"""What `npu-smi` says of the devices reaches the workers. The tool is not a real one; server and workers are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.server import new_store, pack_service, run_server
from tests.npu_smi import FakeNpuSmi

pytestmark = pytest.mark.e2e


def test_workers_run_on_the_cores_near_their_devices(tmp_path: Path) -> None:
    store, usable = new_store(tmp_path), sorted(os.sched_getaffinity(0))
    tool = FakeNpuSmi(tmp_path / "smi", [f"{usable[-1]},4000", "4001"])
    pack_service("env", store, model="near", config="deviceIds: [0]\n")
    pack_service("env", store, model="far", config="deviceIds: [1]\n")
    pack_service("env", store, model="free", config="deviceIds: [0]\nbindCores: false\n")
    with run_server(tmp_path, properties="bind_cores=true\n", env=tool.environment) as server:
        for model in ("near", "far", "free"):
            assert server.register(Path(f"{model}.mar"), initial_workers=1).status_code == 200
        cores = {model: server.predict(model, b"x").json()["cores"] for model in ("near", "far", "free")}
        assert cores == {"near": [usable[-1]], "far": usable, "free": usable}
        words = "far:1.0 is not bound to cores (bindCores): this server may use none of the cores near device 1"
        assert words in [line.get("message", "") for line in server.log_lines()]
