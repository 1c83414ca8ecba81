"""Workers that lack something: who waits, who is refused, what both are told, and how it goes on."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.management_errors import ResourcesMissing, TooManyWorkers, WorkersNotStarted
from msx_frontend.models.describe import describe
from msx_frontend.models.health import Health
from msx_frontend.models.model_api import ModelApi
from msx_frontend.models.versions.states import ModelState
from msx_frontend.resources import starts
from msx_frontend.workers import group_end
from tests.frontend.harness import FakeGroup, Harness, in_harness, until
from tests.phrases import no_worker

TP2 = "parallelType: tp\nparallelLevel: 2\n"
MODELS = {
    "plain": "",
    "tp": TP2,
    "pp": "parallelType: pp\nparallelLevel: 2\ndeviceIds: [6, 7]\n",
    "custom": "parallelType: custom\nparallelLevel: 3\n",
}
NEEDS = {"plain": 1, "tp": 2, "pp": 2, "custom": 3}


async def register(harness: Harness, model: str, config: str = "", **wanted: Any) -> None:
    """As at the start of a server: with the default number of workers, unless told otherwise."""
    await harness.register(model, config=config, **{"initial_workers": None, "at_startup": True, **wanted})


# -- devices: who shares, who waits --


@pytest.mark.parametrize("order", list(permutations(MODELS)), ids="-".join)
def test_eight_devices_are_enough_for_all_in_any_order(tmp_path: Path, order: tuple[str, ...]) -> None:
    async def test(harness: Harness) -> None:
        for model in order:
            await register(harness, model, MODELS[model], initial_workers=None if model == "plain" else 1)
        held_before = sum(NEEDS[model] for model in order[: order.index("plain")])
        assert len(harness.groups("plain")) == 8 - held_before
        groups = [harness.devices_of(model)[0] for model in ("tp", "pp", "custom")]
        assert len({device for devices in groups for device in devices}) == 7, "groups do not share"
        assert all(harness.registry.find(model).status.state is ModelState.READY for model in MODELS)
        assert bool(harness.shared) == (order[-1] != "plain")
        await fourth_group_waits(harness)

    in_harness(tmp_path, test, npus=8)


async def fourth_group_waits(harness: Harness) -> None:
    await register(harness, "fourth", TP2, initial_workers=1)
    version = harness.registry.find("fourth")
    assert (version.status.state, version.status.shortage and version.status.shortage.resource) == (
        ModelState.WAITING,
        "devices",
    )
    assert version.status.reason.startswith(
        "fourth:1.0 needs 2 devices that no other group has, and 1 of 8 devices is left"
    )
    assert all(f"held by {model}:1.0" in version.status.reason for model in ("tp", "pp", "custom"))
    assert "plain" not in version.status.reason
    await harness.management.unregister("custom", None)
    await until(lambda: version.status.state is ModelState.READY)
    assert len(harness.devices_of("fourth")[0]) == 2


@pytest.mark.parametrize("strict", [{"exclusive_group_devices": True}, {}])
def test_strictness_makes_them_wait_for_workers_of_one_process(tmp_path: Path, strict: dict[str, Any]) -> None:
    config = TP2 if strict else f"{TP2}exclusiveDevices: true\n"

    async def test(harness: Harness) -> None:
        await register(harness, "plain")
        await register(harness, "tp", config, initial_workers=1)
        version = harness.registry.find("tp")
        assert (
            "tp:1.0 needs 2 devices of its own, and none of 2 devices is left for it: 0 and 1" in version.status.reason
        )
        await harness.management.scale("plain", None, 0, 0, wait=True)
        await until(lambda: version.status.state is ModelState.READY)
        assert harness.shared == []

    in_harness(tmp_path, test, npus=2, **strict)


def test_workers_that_wait_beside_one_that_serves(tmp_path: Path) -> None:
    """They are counted, described, and the first to go."""

    async def test(harness: Harness) -> None:
        await harness.register("other", config=f"{TP2}deviceIds: [0, 1]\n")
        await harness.register("m", config=TP2, initial_workers=2)
        version = harness.registry.find("m")
        assert (version.status.state, version.workers.least, version.workers.ready) == (ModelState.DEGRADED, 2, 1)
        assert version.figures.gauges()["msx_workers_waiting"] == 1
        ready, waits = sorted(describe(version)["workers"], key=lambda worker: worker["status"])
        assert (ready["status"], ready["devices"]) == ("READY", "2,3")
        assert (waits["status"], waits.get("devices"), waits["generation"]) == ("WAITING", None, 0)
        assert waits["waitsFor"]["resource"] == "devices"
        assert "held by other:1.0" in waits["waitsFor"]["reason"]
        job = harness.submit("m")
        await until(lambda: job.group is not None)
        harness.groups("m")[0].answer()
        await harness.management.scale("m", None, 1, 1, wait=True)
        assert (version.status.state, version.status.reason, harness.devices_of("m")) == (
            ModelState.READY,
            "",
            [(2, 3)],
        )

    in_harness(tmp_path, test, npus=4)


def test_the_first_that_waits_is_the_first_served_and_the_others_learn_who_holds_it_now(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        for model in ("m", "second", "third"):
            await harness.register(model, config="exclusiveDevices: true\n")
        await harness.management.unregister("m", None)
        await until(lambda: harness.registry.find("second").status.state is ModelState.READY)
        third = harness.registry.find("third")
        assert "0 is held by second:1.0" in third.status.reason
        with pytest.raises(ServiceUnavailable, match=r"0 is held by second:1\.0"):
            harness.submit("third")
        await harness.management.unregister("third", None)
        await harness.management.unregister("second", None)
        assert harness.devices.holders(0) == []

    in_harness(tmp_path, test, npus=1)


# -- what waiting is, and what it is not --


def test_a_model_that_waits(tmp_path: Path) -> None:
    """Clients hear at once what is missing; probes say not ready, TorchServe's ping healthy; no failure is counted."""

    async def test(harness: Harness) -> None:
        await harness.register("other", config="exclusiveDevices: true\n")
        await harness.register("m", config="maxRetryTimeoutInSec: 0\n")
        health = Health(harness.registry)
        health.begin()
        version = harness.registry.find("m")
        words = "m:1.0 needs 1 device, and none of 1 device is left for it: 0 is held by other:1.0"
        with pytest.raises(ServiceUnavailable) as caught:
            harness.submit("m")
        assert caught.value.message == f"{no_worker('m')}: it waits for devices: {words}"
        described = describe(version)
        assert (described["state"], described["reason"]) == ("WAITING", f"{words}.")
        assert (described["minWorkers"], described["deviceType"]) == (1, "npu")
        assert (health.ready(), health.ping()[0]) == (False, 200)
        assert health.not_ready_because() == "not serving: m (waits for devices)"
        assert not version.workers.expected
        await harness.management.unregister("other", None)
        await until(lambda: version.status.state is ModelState.READY)
        assert (health.ready(), version.status.last_end) == (True, None)

    in_harness(tmp_path, test, npus=1)


def test_a_failed_one_that_is_tried_again_gets_its_devices_back_or_waits(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="exclusiveDevices: true\nmaxRetryTimeoutInSec: 0\n")
        version = harness.registry.find("m")
        await harness.register("other", config="exclusiveDevices: true\n")
        harness.groups("m")[0].end(group_end.exited(0, 1, 3, ""))
        await until(lambda: harness.registry.find("other").status.state is ModelState.READY)
        assert (version.status.state, harness.devices_of("m")) == (ModelState.FAILED, [])
        await harness.management.scale("m", None, 1, 1, wait=True)
        assert version.status.state is ModelState.WAITING
        await harness.management.unregister("other", None)
        await until(lambda: version.status.state is ModelState.READY)

    in_harness(tmp_path, test, npus=1)


def test_one_that_waits_may_be_unregistered_and_restored(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("other", config="exclusiveDevices: true\n")
        await harness.register("m", config="exclusiveDevices: true\n", initial_workers=3)
        assert (await harness.stored())["m", "1.0"].min_workers == 1, "no more than there can be"
        await harness.management.unregister("m", None)
        assert harness.registry.names() == ["other"]
        assert harness.devices.holders(0) == ["other:1.0"]

    in_harness(tmp_path, test, npus=1)


# -- what calls are told --


def test_a_call_that_waits_for_its_workers_does_not_wait_for_what_others_hold(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("other", config="exclusiveDevices: true\n")
        harness.pack("m")
        api = ModelApi(harness.management, enabled=True)
        words = (
            "1 of 1 wait for devices: m:1.0 needs 1 device, and none of 1 device is left for it: 0 is held by other:1.0"
        )
        told = await api.register({"url": "m.mar", "initial_workers": "1"})
        assert told == (f'Model "m" Version: 1.0 registered with 1 initial workers; {words}', 202)
        told = await api.scale("m", None, {"min_worker": "2", "synchronous": "true"})
        assert told == (f"Workers scaled to 2 for model: m; {words.replace('1 of 1 wait', '2 of 2 wait')}", 202)
        assert harness.registry.find("m").status.state is ModelState.WAITING

    in_harness(tmp_path, test, npus=1)


def test_one_that_shall_replace_another_cannot_wait_for_what_that_holds(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        config = "exclusiveDevices: true\n"
        await harness.register("m", config=config)
        old = harness.registry.find("m")
        with pytest.raises(ResourcesMissing, match=r"0 is held by m:1\.0") as caught:
            await harness.register("m", config=config, replace=True)
        assert (caught.value.status, caught.value.type) == (500, "WorkerInitializationException")
        assert (harness.registry.find("m"), old.status.state) == (old, ModelState.READY)
        assert harness.devices.holders(0) == ["m:1.0"]

    in_harness(tmp_path, test, npus=1)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("deviceIds: [7]", "deviceIds: [7] names device 7, and this server has devices 0 to 1."),
        ("parallelType: tp\nparallelLevel: 3", "m:1.0 needs 3 devices, and this server has 2."),
    ],
)
def test_what_can_never_be_is_refused(tmp_path: Path, config: str, words: str) -> None:
    """TorchServe's type; a call that does not wait hears it, too."""

    async def test(harness: Harness) -> None:
        with pytest.raises(WorkersNotStarted) as caught:
            await harness.register("m", config=config)
        assert caught.value.message == f"Failed to start workers for model m version: 1.0. {words}"
        assert caught.value.type == "WorkerInitializationException"
        assert harness.registry.names() == []
        await harness.register("m", config=config, initial_workers=0)
        with pytest.raises(ResourcesMissing, match="Failed to start workers for model m"):
            await harness.management.scale("m", None, 1, 1, wait=False)
        assert (harness.registry.find("m").workers.least, FakeGroup.living) == (0, [])

    in_harness(tmp_path, test, npus=2)


# -- processes --


@pytest.mark.parametrize(("config", "most"), [("", 4), ("parallelType: tp\nparallelLevel: 2\n", 2)])
def test_more_workers_than_the_server_may_ever_have_are_refused(tmp_path: Path, config: str, most: int) -> None:
    """By the yaml, the call that registers, and the one that scales; nothing of it is left, and nothing changes."""

    async def test(harness: Harness) -> None:
        words = (
            r"this server may have 4 worker processes \(max_worker_processes\); ask for fewer workers, or raise it\.$"
        )
        with pytest.raises(TooManyWorkers, match=rf"^m:1\.0 cannot have 1280 workers.*: {words}"):
            await harness.register("m", config=f"{config}minWorkers: 1280\n")
        with pytest.raises(TooManyWorkers, match=words):
            await harness.register("m", config=config, initial_workers=most + 1)
        assert (harness.registry.names(), FakeGroup.living) == ([], [])
        await harness.register("m", config=config, initial_workers=1)
        for wait in (True, False):
            with pytest.raises(TooManyWorkers, match=words) as caught:
                await harness.management.scale("m", None, most + 1, most + 1, wait=wait)
            assert caught.value.status == 400
        assert (len(harness.groups()), harness.registry.find("m").workers.least) == (1, 1)
        await harness.management.scale("m", None, most, most + 1, wait=True)
        assert len(harness.groups()) == most

    in_harness(tmp_path, test, max_worker_processes=4)


def test_what_others_have_of_the_processes_is_waited_for(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("other", config=TP2)
        await harness.register("m", initial_workers=3)
        version = harness.registry.find("m")
        assert (version.workers.ready, version.workers.waiting) == (1, 2)
        assert version.status.shortage is not None
        assert version.status.shortage.resource == "processes"
        assert "of the 3 that this server may have (max_worker_processes)" in version.status.reason
        await harness.management.unregister("other", None)
        await until(lambda: version.status.state is ModelState.READY)
        assert len(harness.groups("m")) == 3

    in_harness(tmp_path, test, max_worker_processes=3)


def test_the_default_number_of_workers_keeps_to_the_processes(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await register(harness, "plain")
        assert len(harness.groups("plain")) == 2

    in_harness(tmp_path, test, npus=8, max_worker_processes=2)


# -- memory --


def test_a_worker_waits_for_memory_and_goes_on_by_itself(tmp_path: Path) -> None:
    """A sibling takes 1 MiB here."""

    async def test(harness: Harness) -> None:
        harness.memory = 0
        await harness.register("m", initial_workers=2)
        version = harness.registry.find("m")
        assert (version.status.state, version.workers.ready) == (ModelState.DEGRADED, 1)
        assert version.status.shortage == ("memory", version.status.reason.removesuffix("."))
        words = (
            "m:1.0 needs 1 MB of memory, 1.2 times what a worker of it takes, and 0 MB are available; it starts when"
        )
        assert version.status.reason.startswith(words)
        assert ["waitsFor" in worker for worker in describe(version)["workers"]].count(True) == 1
        harness.memory = 1 << 21
        await until(lambda: version.status.state is ModelState.READY)

    with patch.object(starts, "LOOK", 0.001):
        in_harness(tmp_path, test, parallel_starts=1)


def test_one_without_a_sibling_is_tried(tmp_path: Path) -> None:
    """Also when it starts again: what it needs was there before."""

    async def test(harness: Harness) -> None:
        harness.memory = 0
        await harness.register("m")
        harness.groups("m")[0].end(group_end.exited(0, 1, 3, ""))
        version = harness.registry.find("m")
        await until(lambda: version.status.state is ModelState.READY and version.workers.all[0].generation == 2)

    in_harness(tmp_path, test)


def test_waiting_for_memory_is_not_a_failure(tmp_path: Path) -> None:
    """A worker that has crashed waits before it starts again; its pauses do not go on meanwhile."""

    async def test(harness: Harness) -> None:
        await harness.register("m", initial_workers=2)
        harness.memory = 0
        harness.groups("m")[1].end(group_end.exited(0, 1, 3, ""))
        version = harness.registry.find("m")
        await until(lambda: version.workers.waiting)
        waits = next(one for one in version.workers.all if one.state.value == "WAITING")
        assert (waits.state.value, waits.generation, version.status.state) == ("WAITING", 1, ModelState.DEGRADED)
        job = harness.submit("m")
        await until(lambda: job.group is not None)
        harness.groups("m")[0].answer()
        harness.memory = 1 << 30
        await until(lambda: version.status.state is ModelState.READY)
        assert (waits.generation, waits.state.value) == (2, "READY")
        restarts = harness.metrics.registry.get_sample_value(
            "msx_worker_restarts_total", {"model": "m", "version": "1.0"}
        )
        assert restarts == 1

    with patch.object(starts, "LOOK", 0.001):
        in_harness(tmp_path, test)


# -- how many start at once --


def test_groups_start_a_few_at_once_and_are_not_split(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await harness.register("m", config=TP2, initial_workers=4, synchronous=False)
        await until(lambda: len(harness.groups()) == 2)
        version = harness.registry.find("m")
        assert {len(group.spec.ranks) for group in harness.groups()} == {2}
        assert version.status.state is ModelState.LOADING
        assert version.workers.expected, "requests wait for those that start"
        in_line = "in line to start: 2 do so at once (parallel_starts)"
        await until(lambda: [worker.get("phase") for worker in describe(version)["workers"]].count(in_line) == 2)
        FakeGroup.loading.clear()
        await until(lambda: version.status.state is ModelState.READY)
        FakeGroup.loading.add("m")
        await harness.management.unregister("m", None)

    in_harness(tmp_path, test, parallel_starts=2)


def test_one_that_fails_or_is_given_up_makes_room_for_the_next(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.failing.add("m")
        with pytest.raises(WorkersNotStarted):
            await harness.register("m", initial_workers=3)
        FakeGroup.loading.add("n")
        await harness.register("n", initial_workers=3, synchronous=False)
        await until(lambda: len(harness.groups("n")) == 1)
        await harness.register("other", synchronous=False)
        await harness.management.unregister("n", None)
        await until(lambda: harness.registry.find("other").status.state is ModelState.READY)

    in_harness(tmp_path, test, parallel_starts=1)
