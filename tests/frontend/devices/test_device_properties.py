"""Register, scale, crash, unregister in any order: no device is in two groups or lost, and no group waits in vain."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_core.service_errors import ServiceError
from msx_frontend.devices.errors import DevicesHeldError
from msx_frontend.workers import group_end
from tests.frontend.harness import Harness, open_harness, until
from tests.loops import run

NPUS = 6
CONFIGS = {
    "one": "",
    "alone": "exclusiveDevices: true\n",
    "tp2": "parallelType: tp\nparallelLevel: 2\n",
    "tp3": "parallelType: tp\nparallelLevel: 3\ndeviceIds: [5, 1, 3, 0]\n",
    "custom": "parallelType: custom\nparallelLevel: 2\nmaxRetryTimeoutInSec: 0\n",
    "cpu": "parallelType: tp\nparallelLevel: 2\ndeviceType: cpu\n",
}
SIZES = {"one": 1, "alone": 1, "tp2": 2, "tp3": 3, "custom": 2, "cpu": 0}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["register", "scale", "crash", "unregister"]), st.sampled_from(list(CONFIGS)), st.integers(0, 4)
    ),
    max_size=14,
)


async def act(harness: Harness, what: str, model: str, number: int) -> None:
    try:
        if what == "register":
            await harness.register(model, config=CONFIGS[model], initial_workers=number)
        elif what == "scale":
            await harness.management.scale(model, None, number, number, wait=True)
        elif what == "unregister":
            await harness.management.unregister(model, None)
        elif groups := harness.groups(model):
            groups[number % len(groups)].end(group_end.exited(0, 1, 3, ""))
            await until(lambda: settled(harness, model))
    except ServiceError:
        pass  # it is not there, or nothing fits


def settled(harness: Harness, model: str) -> bool:
    replicas = harness.registry.find(model, None).workers.all
    return all(replica.state.value in ("READY", "FAILED", "WAITING") for replica in replicas)


def check(harness: Harness) -> None:
    """Devices in describe are those that the pool has given; a worker that waits has none, and could not have any."""
    owners: dict[int, list[str]] = {}
    for version in harness.registry.all_versions():
        name = version.source.name
        assert version.workers.least == len(version.workers.all)
        for replica in version.workers.all:
            state = replica.state.value
            assert (replica.lease is None) == (state in ("FAILED", "WAITING"))
            assert (replica.shortage is not None) == (state == "WAITING")
            if replica.lease is not None:
                assert len(replica.lease.numbers) == SIZES[name]
                for device in replica.lease.numbers:
                    owners.setdefault(device, []).append(f"{name}:1.0")
            elif state == "WAITING":
                with pytest.raises(DevicesHeldError):
                    harness.devices.lease("another", version.config)
    for device in range(NPUS):
        held = owners.get(device, [])
        assert sorted(harness.devices.holders(device)) == sorted(held)
        assert "alone:1.0" not in held or len(held) == 1
        assert len([owner for owner in held if owner != "one:1.0"]) < 2, "groups do not share"


@settings(max_examples=40)
@given(STEPS)
def test_no_device_has_two_owners_and_none_is_lost(steps: list[tuple[str, str, int]]) -> None:
    async def test(folder: Path) -> None:
        async with open_harness(folder, npus=NPUS) as harness:
            for step in steps:
                await act(harness, *step)
                check(harness)
            for model in CONFIGS:
                await act(harness, "unregister", model, 0)
            assert not any(harness.devices.holders(device) for device in range(NPUS))
            await act(harness, "register", "tp2", 3)
            assert harness.registry.find("tp2", None).workers.least == 3

    with tempfile.TemporaryDirectory() as folder:
        run(test(Path(folder)))
