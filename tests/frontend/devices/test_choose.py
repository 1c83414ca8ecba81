"""Which of the accelerators a server takes, by its keys and by what it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest

from msx_frontend.devices import choose
from msx_frontend.devices.accelerator import Device
from msx_frontend.devices.choose import ChosenDevices, choose_accelerator, resources_of_devices
from msx_frontend.devices.settings import DeviceSettings, NoDevicesError, UnknownAcceleratorError
from msx_frontend.findings import Finding, failed
from tests.frontend.devices.fake_accelerator import FakeAccelerator

SILENT = failed("FARs", "the driver of FAR does not answer", "Start it.")


class Found(FakeAccelerator):
    """Each class has as many devices as `count` says, and remembers what was made of it."""

    count = 0
    told: Sequence[Finding] = ()
    made: list[FakeAccelerator]

    def __init__(self, limit: int | None = None, env: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(self.count)
        self.devices = self.devices[:limit]
        self.made.append(self)

    def problems(self) -> Sequence[Finding]:
        return self.told


class Near(Found):
    name, title, visible, resource = "near", "NEAR", "NEAR_VISIBLE", "NEAR"


class Far(Found):
    name, title, visible, resource = "far", "FAR", "FAR_VISIBLE", "FAR"


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "KNOWN", (Near, Far))
    for kind in (Near, Far):
        monkeypatch.setattr(kind, "made", [], raising=False)


def has(monkeypatch: pytest.MonkeyPatch, near: int, far: int) -> None:
    monkeypatch.setattr(Near, "count", near)
    monkeypatch.setattr(Far, "count", far)


def chosen(accelerator: str = "auto", limit: int | None = None, simulate: int = 0, **env: str) -> ChosenDevices:
    """Choose, and assert that all accelerators but the chosen one are closed."""
    Near.made.clear()
    Far.made.clear()
    choice = choose_accelerator(DeviceSettings(accelerator, limit, simulate), env)
    for one in (*Near.made, *Far.made):
        assert one.closed == (one is not choice.accelerator)
    return choice


def summary(choice: ChosenDevices) -> tuple[str, int, list[str]]:
    return choice.accelerator.name, len(choice.devices), list(choice.remarks)


@pytest.mark.parametrize(("near", "far", "name"), [(2, 0, "near"), (0, 3, "far")])
def test_the_one_that_has_devices(monkeypatch: pytest.MonkeyPatch, near: int, far: int, name: str) -> None:
    has(monkeypatch, near, far)
    assert summary(chosen()) == (name, near or far, [])
    assert summary(chosen(name)) == (name, near or far, [])
    assert summary(chosen(limit=1)) == (name, 1, [])


def test_of_two_the_first_which_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, 1, 2)
    said = (
        "a server uses one kind of devices, and here are 1 NEAR and 2 FARs: it takes the first; accelerator=far takes "
        "the FARs"
    )
    assert summary(chosen()) == ("near", 1, [said])
    assert summary(chosen("far")) == ("far", 2, [])
    assert not Near.made, "what is not asked for is not looked for"


def test_what_cannot_be_read_is_said_whichever_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, 2, 0)
    monkeypatch.setattr(Far, "told", [SILENT])
    assert (summary(chosen()), chosen().problems) == (("near", 2, []), [SILENT])
    has(monkeypatch, 0, 0)
    assert (summary(chosen()), chosen().problems) == (("none", 0, []), [SILENT])


def test_none_are_looked_for_where_none_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, 2, 2)
    assert summary(chosen("none")) == summary(chosen(limit=0)) == summary(chosen("far", 0)) == ("none", 0, [])
    assert not Near.made
    assert not Far.made
    (remark,) = chosen("none", simulate=4).remarks
    assert remark == "simulate_devices=4 has no effect: accelerator=none or number_of_npu=0 allows none"


def test_a_kind_that_is_named_and_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models would compute on the CPU without a word."""
    has(monkeypatch, 2, 0)
    monkeypatch.setattr(Far, "told", [SILENT])
    with pytest.raises(NoDevicesError) as info:
        chosen("far", FAR_VISIBLE="-1")
    assert str(info.value) == (
        "accelerator=far: no FAR was found (the driver of FAR does not answer. Start it; FAR_VISIBLE is '-1'): leave "
        "out the key to serve on what there is; simulate_devices=N makes N FARs that exist only as numbers"
    )
    assert all(one.closed for one in Far.made)


def test_a_name_that_is_none() -> None:
    for ask in (lambda: chosen("faar"), lambda: resources_of_devices("faar")):
        with pytest.raises(UnknownAcceleratorError) as info:
            ask()
        assert str(info.value) == "accelerator: 'faar' is not one of auto, near, far, none"


# -- simulation --


@pytest.mark.parametrize(("accelerator", "name"), [("auto", "near"), ("far", "far")])
def test_devices_are_simulated_where_there_are_none(accelerator: str, name: str) -> None:
    choice = chosen(accelerator, simulate=3)
    assert summary(choice) == (name, 3, [])
    assert choice.devices[0] == Device("f0", "simulated", simulated=True)
    assert len(chosen(accelerator, limit=2, simulate=3).devices) == 2


def test_devices_that_are_there_win(monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, 0, 1)
    said = "simulate_devices=4 has no effect: the server has found 1 FAR"
    assert summary(chosen(simulate=4)) == ("far", 1, [said])
    assert summary(chosen("near", simulate=4)) == ("near", 4, []), "none of the kind that is named"


def test_a_limit_does_not_simulate_any_more() -> None:
    """As it did up to 0.1.0: a configuration of TorchServe must not pretend that there are GPUs."""
    name, count, (remark,) = summary(chosen(limit=4))
    assert (name, count) == ("none", 0)
    assert remark == (
        "number_of_npu=4 (number_of_gpu) is the most devices that are used, and none were found: 4 devices are not "
        "simulated any more; simulate_devices=4 does it"
    )


def test_the_resources_of_a_cluster() -> None:
    assert resources_of_devices() == ["NEAR", "FAR"]
    assert (resources_of_devices("far"), resources_of_devices("none")) == (["FAR"], [])
