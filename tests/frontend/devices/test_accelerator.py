"""Nothing outside devices/ knows which accelerator there is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import msx_archiver
import msx_backend
import msx_frontend
import msx_sdk
from msx_frontend.cli import status
from msx_frontend.devices.accelerator import Accelerator, figures
from msx_frontend.devices.ascend import VISIBLE as ASCEND_VISIBLE
from msx_frontend.devices.ascend import Ascend
from msx_frontend.devices.choose import choose_accelerator, visible_variables
from msx_frontend.devices.none import NoAccelerator
from msx_frontend.devices.nvidia.accelerator import Nvidia
from msx_frontend.devices.settings import DeviceSettings
from msx_frontend.metrics import ServerMetrics
from msx_frontend.metrics.system import of_machine
from msx_frontend.models.describe import describe
from tests.frontend.devices.fake_accelerator import PORTS, VISIBLE, FakeAccelerator, add_accelerator
from tests.frontend.harness import Harness, in_harness
from tests.frontend.metrics.test_server import exposed

ASCENDS = ("ASCEND", "HCCL")
TP2 = "parallelType: tp\nparallelLevel: 2\nshareDevices: true\n"


def test_another_accelerator_is_all_that_the_server_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VISIBLE, "inherited")
    for name in [name for name in os.environ if name.startswith(ASCENDS)]:
        monkeypatch.delenv(name)  # MindSpore sets one when another test of this process imports it
    fake = FakeAccelerator(4)
    add_accelerator(monkeypatch, fake)

    async def test(harness: Harness) -> None:
        await harness.register("one")
        await harness.register("two", config=TP2)
        await harness.register("cpu", config="deviceType: cpu\n")
        (one,), (two,), (cpu,) = (harness.groups(model) for model in ("one", "two", "cpu"))
        assert one.spec.ranks[0].env[VISIBLE] == "f0"
        assert [rank.env[VISIBLE] for rank in two.spec.ranks] == ["f2+f3", "f2+f3"]
        assert two.spec.ranks[0].env[PORTS] == two.spec.ranks[1].env[PORTS]
        assert cpu.spec.ranks[0].env[VISIBLE] == "", "it sees none"
        for group in (one, two, cpu):
            assert not [name for rank in group.spec.ranks for name in rank.env if name.startswith(ASCENDS)]
        described = {name: describe(harness.registry.find(name)) for name in ("one", "two", "cpu")}
        assert [described[name]["deviceType"] for name in described] == ["fake", "fake", "cpu"]
        assert described["two"]["workers"][0]["devices"] == "f2,f3"
        status.columns([row for version in described.values() for row in status._rows(version)])
        assert "  2,3  " in capsys.readouterr().out

    in_harness(tmp_path, test, accelerator=fake, env=os.environ)


def test_its_figures_are_in_the_metrics() -> None:
    fake, metrics = FakeAccelerator(2), ServerMetrics()
    del fake.statuses["f1"]
    metrics.system(of_machine(lambda: figures(fake.status(), fake.detect()))())
    seen = exposed(metrics)
    assert seen["GPUMemoryUtilization", "DeviceId=0,Level=Host"] == 25
    assert not [labels for _, labels in seen if "DeviceId=1" in labels]


def test_a_machine_without_devices() -> None:
    accelerator, devices, *_ = choose_accelerator(DeviceSettings(), {"PATH": "/nowhere", ASCEND_VISIBLE: "0,1"})
    assert (accelerator.kind, devices, accelerator.status()) == ("cpu", (), {})
    assert accelerator.environment(()) == {}, "workers inherit what may hide devices from them"


@pytest.mark.parametrize("settings", [DeviceSettings(limit=0), DeviceSettings(accelerator="none")])
def test_devices_that_the_server_is_not_to_use_are_hidden_from_its_workers(settings: DeviceSettings) -> None:
    accelerator = choose_accelerator(settings, {}).accelerator
    assert accelerator.environment(()) == dict.fromkeys(visible_variables(), "")


def test_all_have_the_form_of_the_protocol() -> None:
    """mypy checks it."""
    accelerators: list[Accelerator] = [Ascend(env={}), Nvidia(env={}), NoAccelerator(), FakeAccelerator(1)]
    assert [accelerator.kind for accelerator in accelerators] == ["npu", "gpu", "cpu", "fake"]


def test_the_variable_of_ascend_stands_in_one_file() -> None:
    roots = [Path(package.__path__[0]) for package in (msx_sdk, msx_archiver, msx_backend, msx_frontend)]
    files = [path for root in roots for path in root.rglob("*.py") if ASCEND_VISIBLE in path.read_text()]
    assert [path.name for path in files] == ["ascend.py"]
