"""Description of a version by the describe API."""

from __future__ import annotations

import re
from pathlib import Path

from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.models.describe import describe
from msx_frontend.models.versions.states import ModelState
from msx_frontend.resources.device_reading import DeviceReading
from msx_frontend.workers import group_end
from tests.contract.torchserve.shapes import MEMBERS
from tests.frontend.harness import FAILED, SEQUENTIAL, FakeGroup, Harness, in_harness, until
from tests.frontend.workers.fake_launcher import PID


def test_a_version_that_serves(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="batchSize: 4\nmaxBatchDelay: 50\nresponseTimeout: 9", initial_workers=2)
        harness.submit("m")
        described = describe(harness.registry.find("m"))
        assert list(described)[:7] == MEMBERS[:7]
        expected = {"modelName": "m", "modelVersion": "1.0", "modelUrl": "m.mar", "runtime": "python", "minWorkers": 2}
        expected |= {"maxWorkers": 2, "batchSize": 4, "maxBatchDelay": 50, "responseTimeout": 9, "state": "READY"}
        expected |= {"loadedAtStartup": False, "deviceType": "cpu", "parallelLevel": 0, "stateful": False}
        assert expected.items() <= described.items()
        assert described["jobQueueStatus"] == {"remainingCapacity": 100, "pendingRequests": 0}
        assert "deviceIds" not in described
        assert "reason" not in described
        assert "traceback" not in described

    in_harness(tmp_path, test)


def test_workers(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", initial_workers=2)
        FakeGroup.loading.add("m")
        version = harness.registry.find("m")
        (group,) = [group for group in harness.groups() if group is version.workers.all[0].group]
        group.end(group_end.exited(0, 12, 3, "no room"))
        await until(lambda: version.workers.all[0].generation == 2 and version.workers.all[0].phase == "initializing")
        again, ready = describe(version)["workers"]
        assert int(ready["id"]) == int(again["id"]) + 1
        assert (ready["status"], ready["pid"], ready["memoryUsage"]) == ("READY", 4711, 1 << 20)
        assert (ready["gpu"], ready["gpuUsage"], ready["generation"]) == (False, "N/A", 1)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", ready["startTime"])
        assert "lastError" not in ready
        assert "phase" not in ready
        assert (again["status"], again["generation"], again["phase"]) == ("RESTARTING", 2, "initializing")
        assert again["lastError"] == "Rank 0 (pid 12) exited with code 3. Its last words: no room"

    in_harness(tmp_path, test)


def test_a_worker_that_loads_and_one_that_drains(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await harness.register("m", synchronous=False)
        version = harness.registry.find("m")
        await until(harness.groups)
        await until(lambda: describe(version)["workers"][0]["status"] == "LOADING")
        FakeGroup.loading.clear()
        await until(lambda: version.status.state is ModelState.READY)
        harness.submit("m")
        await harness.management.scale("m", None, 0, 0, wait=False)
        await until(lambda: describe(version)["workers"][0]["status"] == "UNLOADING")
        harness.groups()[0].answer()

    in_harness(tmp_path, test)


def test_a_version_that_has_failed_says_why(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="maxRetryTimeoutInSec: 0")
        version = harness.registry.find("m")
        harness.groups()[0].end(FAILED)
        await until(lambda: version.status.state is ModelState.FAILED)
        described = describe(version)
        assert described["state"] == "FAILED"
        assert described["reason"] == "The model could not be loaded: no weights"
        assert described["traceback"] == "Traceback: no weights"
        (worker,) = described["workers"]
        assert (worker["status"], worker["memoryUsage"]) == ("FAILED", 0)
        assert "pid" not in worker
        assert "startTime" not in worker

    in_harness(tmp_path, test)


def test_whether_batches_overlap(tmp_path: Path) -> None:
    """It is known once a worker has loaded the handler."""

    async def test(harness: Harness) -> None:
        FakeGroup.overlapping.add("m")
        await harness.register("m", initial_workers=0)
        version = harness.registry.find("m")
        assert "overlap" not in describe(version)
        await harness.management.scale("m", None, 1, 1, wait=True)
        assert describe(version)["overlap"] == {"enabled": True}
        assert harness.groups()[0].runner.overlaps
        await harness.register("n")
        assert describe(harness.registry.find("n"))["overlap"] == {"enabled": False, "reason": SEQUENTIAL}

    in_harness(tmp_path, test)


def test_devices(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="deviceIds: [1]")
        described = describe(harness.registry.find("m"))
        assert (described["deviceType"], described["deviceIds"]) == ("npu", [1])
        (worker,) = described["workers"]
        assert (worker["gpu"], worker["gpuUsage"], worker["devices"]) == (True, "N/A", "1")
        assert worker["deviceUsage"] == [{"device": 1, "id": "1", "name": "910B"}]

    in_harness(tmp_path, test, npus=2)


def test_devices_as_they_were_read_last(tmp_path: Path) -> None:
    """The worker's part of the memory is that of its own processes: the ranks of a group have the whole group's."""

    async def test(harness: Harness) -> None:
        await harness.register("m", config="parallelType: tp\nparallelLevel: 2\n")
        busy = DeviceStatus("OK", True, 37, 3318, 65536, processes={PID: 100, PID + 1: 20, 1: 9})
        harness.resources.devices_read(DeviceReading({"0": busy, "1": DeviceStatus("OK", True)}))
        (worker,) = describe(harness.registry.find("m"))["workers"]
        assert worker["gpuUsage"].startswith("gpuId::0 utilization.gpu [%]::37 % ")
        assert [one.get("workerMemory") for one in worker["deviceUsage"]] == [120 << 20, None]
        (version,) = harness.registry.all_versions()
        assert version.figures.device_memory() == [(worker["id"], "0", 120 << 20)]

    in_harness(tmp_path, test, npus=2)
