"""The devices that a worker's torch should see."""

from __future__ import annotations

import pytest

from msx_core.torch_devices import TorchDevices
from msx_frontend.devices.accelerator import Device
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.nodes import GroupPlacement, Share
from msx_frontend.devices.torch_devices import torch_devices
from tests.frontend.devices.fake_accelerator import VISIBLE, FakeAccelerator, add_accelerator

TWO = (Device("f0", "Fake 1"), Device("f1", "Fake 1"))
SIMULATED = (Device("f0", "simulated", simulated=True),)
SHARES = (Share("a", "10.0.0.1", (0, 1), ("f0", "f1"), "1"), Share("b", "10.0.0.2", (2,), ("f0",), "2"))
NODES = GroupPlacement("1", SHARES, "FPU")


@pytest.mark.parametrize(
    ("lease", "rank", "given", "simulated"),
    [
        (Lease("m:1.0"), 0, 0, False),
        (Lease("m:1.0", (0, 1), TWO, torch="fake"), 1, 2, False),
        (Lease("m:1.0", (0,), SIMULATED, torch="fake"), 0, 1, True),
        (Lease("m:1.0", (0,), TWO[:1], torch=""), 0, 0, False),
        (Lease("m:1.0", devices=TWO, torch="fake", placement=NODES), 0, 2, False),
        (Lease("m:1.0", devices=TWO, torch="fake", placement=NODES), 2, 1, False),
    ],
    ids=["on the CPU", "a group", "simulated", "of another kind", "on a node", "on another node"],
)
def test_how_many_of_each_kind(
    lease: Lease, rank: int, given: int, simulated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of kinds of which it has none."""
    add_accelerator(monkeypatch, FakeAccelerator(2))
    (fake,) = [kind for kind in torch_devices(lease, rank) if kind.module == "fake"]
    assert fake == TorchDevices("fake", "FPU", VISIBLE, given, simulated)
