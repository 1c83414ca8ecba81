"""GPUs as NVML shows them reach the workers. The library is not a real one; the server and its processes are."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from msx_frontend.devices.pid_namespace import is_of_host
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.nvml import A100, H100, FakeNvml
from tests.processes import children_of, is_alive

pytestmark = pytest.mark.e2e

FIRST, SECOND = str(H100["uuid"]), str(A100["uuid"])
PROPERTIES = "device_check_interval=0.05\n"


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    return FakeNvml(tmp_path / "nvml", H100, A100)


def environment(nvml: FakeNvml) -> dict[str, str]:
    """In the order of the list, device 0 is the A100."""
    return {**nvml.environment, "CUDA_VISIBLE_DEVICES": "1,0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def reader_of(server: RunningServer) -> psutil.Process | None:
    """The process that reads NVML; None while there is none."""
    return next(iter(children_of(server.process.pid, "devices.nvidia")), None)


def test_workers_get_gpus_by_uuid_and_leave_one_with_an_xid(tmp_path: Path, nvml: FakeNvml) -> None:
    pack_service("env", new_store(tmp_path), model="m")
    with run_server(tmp_path, properties=PROPERTIES, env=environment(nvml)) as server:
        assert server.register(Path("m.mar"), initial_workers=1).status_code == 200

        def shown() -> tuple[str, str, str | None]:
            described = server.describe("m")
            return described["state"], described["deviceType"], described["workers"][0].get("devices")

        assert shown() == ("READY", "gpu", SECOND)
        answer = server.predict("m", b"x").json()
        assert (answer["device_id"], answer["environ"]["CUDA_VISIBLE_DEVICES"]) == (0, SECOND)
        assert not [name for name in answer["environ"] if name.startswith("ASCEND_")]
        nvml.set({"gpu1.processes": f"{server.describe('m')['workers'][0]['pid']} 512"})
        expected = "gpuId::0 utilization.gpu [%]::0 % utilization.memory [%]::0 % memory.used [MiB]::1105 MiB"
        assert server.describe("m")["workers"][0]["gpuUsage"] == expected

        expected_memory = 512 << 20 if is_of_host() else None

        def memory_is_read() -> bool:
            (used,) = server.describe("m")["workers"][0]["deviceUsage"]
            return bool(used.get("workerMemory") == expected_memory)

        wait_until(memory_is_read, "its memory is read", server.tail)
        nvml.set({"xid0": "1 79"})
        wait_until(lambda: shown() == ("READY", "gpu", FIRST), "it has moved", server.tail)
        assert server.inference.get("/readyz").json() == {"status": "Ready; unhealthy devices: 0 (XID 79)"}
        assert server.predict("m", b"x").json()["environ"]["CUDA_VISIBLE_DEVICES"] == FIRST


def test_the_process_that_reads_them_is_replaced_and_leaves_with_the_server(tmp_path: Path, nvml: FakeNvml) -> None:
    with run_server(tmp_path, properties=PROPERTIES, env=environment(nvml)) as server:
        first = wait_until(lambda: reader_of(server), "it reads", server.tail)
        first.kill()
        second = wait_until(
            lambda: (now := reader_of(server)) and now.pid != first.pid and now, "another reads", server.tail
        )
        assert [server.metric("msx_device_healthy", device=device) for device in "01"] == [1, 1]
        server.kill()
        wait_until(lambda: not is_alive(second), "it has left", server.tail)
