"""Devices as `npu-smi` shows them reach the workers. The tool is not a real one; server and workers are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.server import new_store, pack_service, run_server, wait_until
from tests.npu_smi import FakeNpuSmi
from tests.phrases import no_worker

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


def test_a_worker_leaves_an_unhealthy_device_and_waits_where_there_is_no_other(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    tool = FakeNpuSmi(tmp_path / "smi", ["0", "0"])
    pack_service("env", store, model="m")
    with run_server(tmp_path, properties="device_check_interval=0.05\n", env=tool.environment) as server:
        assert server.register(Path("m.mar"), initial_workers=1).status_code == 200

        def seen() -> tuple[str, str | None, int]:
            described = server.describe("m")
            return (
                described["state"],
                described["workers"][0].get("devices"),
                server.inference.get("/readyz").status_code,
            )

        assert seen() == ("READY", "0", 200)
        tool.set_health("Critical", "OK")
        wait_until(lambda: seen() == ("READY", "1", 200), "it has moved", server.tail)
        assert server.inference.get("/readyz").json() == {"status": "Ready; unhealthy devices: 0 (Critical)"}
        assert (server.metric("msx_device_healthy", device="0"), server.metric("msx_device_healthy", device="1")) == (
            0,
            1,
        )
        assert server.predict("m", b"x").json()["environ"]["ASCEND_RT_VISIBLE_DEVICES"] == "1"
        tool.set_health("Critical", "")
        wait_until(lambda: seen() == ("WAITING", None, 503), "it waits", server.tail)
        assert server.predict("m", b"x").json()["message"] == (
            f"{no_worker('m')}: it waits for devices: m:1.0 needs 1 device, "
            "and none of 2 devices is left for it: 0 is unhealthy (Critical), 1 is unhealthy (missing)"
        )
        tool.set_health("OK", "")
        wait_until(lambda: seen() == ("READY", "0", 200), "it is back", server.tail)
