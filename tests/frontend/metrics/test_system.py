from __future__ import annotations

import asyncio
import importlib.util
import shlex
import sys
from pathlib import Path

import pytest

from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.metrics import ServerMetrics
from msx_frontend.metrics.system import SystemMetrics, of_command, of_machine
from msx_protocol import MetricSample
from tests.frontend.metrics.test_server import exposed
from tests.loops import run

HOST = {
    "CPUUtilization",
    "MemoryUsed",
    "MemoryAvailable",
    "MemoryUtilization",
    "DiskUsage",
    "DiskAvailable",
    "DiskUtilization",
}


def test_the_host() -> None:
    samples = of_machine(list)()
    assert {sample.name for sample in samples} == HOST
    assert all(sample.value >= 0 for sample in samples)
    assert all(sample.value <= 100 for sample in samples if sample.name.endswith("Utilization"))


def test_devices_have_the_names_of_gpus() -> None:
    statuses = [(0, DeviceStatus("OK", True, 37, 16384, 65536)), (1, DeviceStatus())]
    metrics = ServerMetrics()
    metrics.system(of_machine(lambda: statuses)())
    seen = exposed(metrics)
    own = "DeviceId=0,Level=Host"
    assert seen["GPUUtilization", own] == 37
    assert seen["GPUMemoryUsed", own] == 16384
    assert seen["GPUMemoryUtilization", own] == 25
    assert not [labels for _, labels in seen if "DeviceId=1" in labels]


def of_python(code: str, limit: float = 60) -> list[MetricSample]:
    return of_command(shlex.join([sys.executable, "-c", code]), limit)()


def test_the_collector_that_torchserves_documentation_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Started by its name in the package `ts`, wherever that is."""
    found = importlib.util.find_spec("msx_torchserve")
    assert found is not None
    assert found.origin is not None
    monkeypatch.syspath_prepend(str(Path(found.origin).with_name("packages")))
    samples = of_command("ts/metrics/metric_collector.py --gpu 0", 60)()
    assert {sample.name for sample in samples} == HOST
    assert {(sample.kind, *sample.labels) for sample in samples if sample.name == "MemoryUsed"}


def test_a_script_is_run_by_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in TorchServe, whose key is the name of one; unless it can be run by itself."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("import sys\nprint(f'Mine.Count:{sys.argv[1]}|#Level:Host|#hostname:h,1')\n")
    Path("own.py").write_text("#!/bin/sh\necho 'Own.Count:4|#Level:Host|#hostname:h,1'\n")
    Path("own.py").chmod(0o755)
    assert [(sample.name, sample.value) for sample in of_command("mine.py 3", 60)()] == [("Mine", 3)]
    assert [(sample.name, sample.value) for sample in of_command(f"{tmp_path}/own.py", 60)()] == [("Own", 4)]


def test_a_command(caplog: pytest.LogCaptureFixture) -> None:
    found = of_python(
        "print('CPUUtilization.Percent:12.5|#Level:Host|#hostname:h,1')\nprint('nonsense')\n"
        "print('Odd.Count:1|#Level:Host|#hostname:h,1')\nprint()\nprint('MemoryUsed.Megabytes:1|#Level:Host|#hostname:h,1')"
    )
    metrics = ServerMetrics()
    metrics.system(found)
    assert [sample.name for sample in found] == ["CPUUtilization", "Odd"]
    assert exposed(metrics)["CPUUtilization", "Level=Host"] == 12.5
    assert "nonsense" in caplog.text


def test_a_command_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert of_python("import sys; sys.exit('no sensors')") == []
    assert "no sensors" in caplog.text
    assert of_command("/no/such/command", 1)() == []
    assert "/no/such/command" in caplog.text
    assert of_python("import time; time.sleep(600)", 0.1) == []
    assert "timed out" in caplog.text


def test_it_looks_again_and_again_also_after_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[int] = []

    def collect() -> list[MetricSample]:
        seen.append(1)
        if len(seen) == 1:
            raise RuntimeError("once")
        return []

    async def test() -> None:
        system = SystemMetrics(collect, lambda samples: None, 0.001)
        while len(seen) < 3:
            await asyncio.sleep(0.001)
        await system.close()

    run(test())
    assert "once" in caplog.text
