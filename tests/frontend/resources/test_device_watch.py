"""Workers leave unhealthy devices, wait where there are no others, and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.models.describe import describe
from msx_frontend.models.versions.states import ModelState
from msx_frontend.resources.device_watch import DeviceWatch
from msx_frontend.workers import replica as replica_module
from msx_frontend.workers.replica import ReplicaState
from tests.frontend.devices.fake_accelerator import VISIBLE, FakeAccelerator
from tests.frontend.harness import FakeGroup, Harness, in_harness, until
from tests.frontend.jobs import error_of

CRITICAL = DeviceStatus("Critical", False)
TP2 = "parallelType: tp\nparallelLevel: 2\n"


class Bench:
    """A harness on fake devices, and the watch over them, which looks when it is told to."""

    def __init__(self, harness: Harness, fake: FakeAccelerator) -> None:
        self.harness, self.fake = harness, fake
        self._good = dict(fake.statuses)
        self._watch = DeviceWatch(fake, harness.resources, 1)

    async def set(self, *bad: int, readings: int = 2) -> None:
        """These are unhealthy, the others are not; so it is read."""
        self.fake.statuses = {**self._good, **{f"f{number}": CRITICAL for number in bad}}
        for _ in range(readings):
            await self._watch.look()

    def seen(self, model: str) -> list[str]:
        return [group.spec.ranks[0].env[VISIBLE] for group in self.harness.groups(model)]

    def state(self, model: str) -> ModelState:
        return self.harness.registry.find(model).status.state

    async def settled(self, model: str, *seen: str) -> None:
        """Its workers are ready, on these devices."""
        await until(lambda: self.state(model) is ModelState.READY and sorted(self.seen(model)) == sorted(seen))


def on_a_bench(folder: Path, devices: int, test: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    fake = FakeAccelerator(devices)

    async def call(harness: Harness) -> None:
        bench = Bench(harness, fake)
        await bench.set()  # the reading of the start
        await test(bench)

    in_harness(folder, call, accelerator=fake)


def test_its_workers_start_again_elsewhere_and_others_go_on(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.harness.register("m", initial_workers=2)
        others = [group for group in bench.harness.groups("m") if group.spec.ranks[0].env[VISIBLE] == "f1"]
        await bench.set(0)
        await bench.settled("m", "f1", "f2")
        assert [group for group in bench.harness.groups("m") if group in others] == others
        moved = next(one for one in bench.harness.registry.find("m").workers.all if one.generation == 2)
        assert moved.last_end is not None
        assert moved.last_end.reason == "The worker had to leave its devices: device 0 is unhealthy (Critical)."

    on_a_bench(tmp_path, 3, test)


def test_one_bad_reading_ends_nothing(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.harness.register("m")
        for _ in range(3):
            await bench.set(0, readings=1)
            await bench.set(readings=1)
        assert bench.harness.registry.find("m").workers.all[0].generation == 1

    on_a_bench(tmp_path, 2, test)


def test_a_worker_without_another_device_waits_and_comes_back(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.harness.register("m", config="deviceIds: [0]\nmaxRetryTimeoutInSec: 0\n")
        await bench.set(0)
        await until(lambda: bench.state("m") is ModelState.WAITING)
        described = describe(bench.harness.registry.find("m"))
        sentence = "m:1.0 needs 1 device, and none of 1 device is left for it: 0 is unhealthy (Critical)"
        assert described["workers"][0]["waitsFor"] == {"resource": "devices", "reason": sentence}
        assert described["unhealthyDevices"] == [{"device": 0, "id": "f0", "health": "Critical"}]
        await bench.set(readings=1)
        assert bench.state("m") is ModelState.WAITING, "one good reading is not enough either"
        await bench.set(readings=1)
        await bench.settled("m", "f0")
        assert "unhealthyDevices" not in describe(bench.harness.registry.find("m"))

    on_a_bench(tmp_path, 2, test)


def test_a_group_leaves_with_all_its_devices(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.harness.register("big", config=TP2)
        await bench.harness.register("small", config="deviceIds: [1]\nexclusiveDevices: true\n", initial_workers=0)
        await bench.set(0)
        await bench.settled("big", "f2+f3")
        await bench.harness.management.scale("small", None, 1, 1, wait=True)
        assert bench.seen("small") == ["f1"]

    on_a_bench(tmp_path, 4, test)


def test_it_is_ahead_of_those_that_wait_already(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.harness.register("first", config="exclusiveDevices: true\n")
        await bench.harness.register("blocker", config="exclusiveDevices: true\n")
        task = asyncio.create_task(bench.harness.register("late", config="exclusiveDevices: true\n"))
        await until(lambda: "late" in bench.harness.registry.names() and bench.state("late") is ModelState.WAITING)
        await bench.set(0)
        await until(lambda: bench.state("first") is ModelState.WAITING)
        await bench.harness.management.unregister("blocker", None)
        await bench.settled("first", "f1")
        await bench.set()
        await bench.settled("late", "f0")
        await task

    on_a_bench(tmp_path, 2, test)


def test_running_requests_may_end_first(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.harness.register("m")
        (group,) = bench.harness.groups("m")
        job = bench.harness.submit("m")
        await bench.set(0)
        assert group in bench.harness.groups("m")
        group.answer()
        await bench.settled("m", "f1")
        assert job.done

    on_a_bench(tmp_path, 2, test)


def test_those_that_do_not_end_hear_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "LEAVE_LIMIT", 0.0)

    async def test(bench: Bench) -> None:
        await bench.harness.register("m")
        job = bench.harness.submit("m")
        await bench.set(0)
        await bench.settled("m", "f1")
        assert "The worker had to leave its devices: device 0 is unhealthy (Critical)." in error_of(job).message

    on_a_bench(tmp_path, 2, test)


def test_a_worker_that_is_about_to_start_does_not_start_there(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        harness = bench.harness
        harness.starts.limit = 0
        task = asyncio.create_task(harness.register("m"))
        await until(lambda: "m" in harness.registry.names() and harness.devices.holders(0))
        await bench.set(0)
        harness.starts.limit = 1
        harness.starts._serve_soon()
        await bench.settled("m", "f1")
        await task
        assert harness.registry.find("m").workers.all[0].generation == 1

    on_a_bench(tmp_path, 2, test)


def test_a_worker_that_loads_there_is_moved(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        FakeGroup.loading.add("m")
        task = asyncio.create_task(bench.harness.register("m"))
        await until(lambda: bench.seen("m") == ["f0"])
        await bench.set(0)
        await until(lambda: bench.seen("m") == ["f1"])
        FakeGroup.loading.clear()
        await bench.settled("m", "f1")
        await task

    on_a_bench(tmp_path, 2, test)


def test_it_can_be_unregistered_while_it_leaves(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.harness.register("m")
        job = bench.harness.submit("m")
        await bench.set(0)
        removal = asyncio.create_task(bench.harness.management.unregister("m", None))
        for group in bench.harness.groups("m"):
            group.answer()
        await removal
        assert job.done
        assert not bench.harness.devices.holders(0)

    on_a_bench(tmp_path, 2, test)


def test_a_tool_that_raises_says_nothing(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    class Broken(FakeAccelerator):
        def status(self) -> dict[str, DeviceStatus]:
            raise RuntimeError("no driver")

    async def test(harness: Harness) -> None:
        watch = DeviceWatch(Broken(1), harness.resources, 1)
        await watch.look()
        assert harness.devices.health.unhealthy == {}
        assert "no driver" in caplog.text

    in_harness(tmp_path, test, accelerator=FakeAccelerator(1))


def test_it_looks_again_and_again_until_it_is_closed(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        fake = FakeAccelerator(1)
        watch = DeviceWatch(fake, harness.resources, 0.001)
        watch.start(None)
        fake.statuses["f0"] = CRITICAL
        await until(lambda: harness.devices.health.unhealthy)
        await watch.close()

    in_harness(tmp_path, test, accelerator=FakeAccelerator(1))


def test_zero_is_never(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        watch = DeviceWatch(FakeAccelerator(1), harness.resources, 0)
        watch.start(None)
        await watch.close()

    in_harness(tmp_path, test, accelerator=FakeAccelerator(1))


def test_the_states_of_a_replica_that_moves(tmp_path: Path) -> None:
    """It is neither a failure nor one of its restarts' pauses."""

    async def test(bench: Bench) -> None:
        await bench.harness.register("m", config="maxRetryTimeoutInSec: 0\n")
        for bad in (0, 1, 0):
            await bench.set(bad)
            await bench.settled("m", f"f{1 - bad}")
        (replica,) = bench.harness.registry.find("m").workers.all
        assert (replica.state, replica.generation) == (ReplicaState.READY, 4)

    on_a_bench(tmp_path, 2, test)
