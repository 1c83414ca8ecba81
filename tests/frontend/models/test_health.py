"""Alive, ready, healthy."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from msx_frontend.models.health import Health
from msx_frontend.models.startup.startup import Startup
from msx_frontend.models.versions.states import ModelState
from msx_frontend.workers import group_end
from tests.frontend.harness import FakeGroup, Harness, Scenario, open_harness, until
from tests.loops import run

DIED = group_end.exited(0, 1, 3, "")


def in_harness(folder: Path, test: Scenario) -> None:
    async def call() -> None:
        async with open_harness(folder) as harness:
            harness.health.started = True
            await test(harness)

    run(call())


def test_a_server_without_models_is_ready_once_it_has_started(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.health.started = False
        assert not harness.health.ready()
        assert harness.health.not_ready_because() == "the server is starting"
        assert harness.health.ping() == (200, "Healthy")
        harness.health.started = True
        assert harness.health.ready()

    in_harness(tmp_path, test)


def test_it_is_not_ready_while_a_model_loads(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await harness.register("m", synchronous=False)
        assert not harness.health.ready()
        assert harness.health.not_ready_because() == "not serving: m"
        assert harness.health.ping() == (200, "Healthy")
        FakeGroup.loading.clear()
        await until(harness.health.ready)
        assert harness.health.not_ready_because() == ""

    in_harness(tmp_path, test)


def test_a_model_without_wanted_workers_is_not_missing_any(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", initial_workers=0)
        assert harness.health.ready()
        assert harness.health.ping() == (200, "Healthy")

    in_harness(tmp_path, test)


@pytest.mark.parametrize("kept", [0, 1])
def test_workers_that_are_told_to_go_are_not_missing(tmp_path: Path, kept: int) -> None:
    """However long their last requests take: the server stays in its pool."""

    async def test(harness: Harness) -> None:
        await harness.register("m", initial_workers=2)
        version = harness.registry.find("m")
        job = harness.submit("m")
        await until(lambda: any(group.jobs for group in harness.groups()))
        seen: list[ModelState] = []
        with patch.object(version.status, "move", lambda state: seen.append(state)):
            await harness.management.scale("m", None, kept, kept, wait=False)
            await until(lambda: version.workers.ready == kept)
            assert (harness.health.ready(), harness.health.ping()) == (True, (200, "Healthy"))
            for group in harness.groups():
                group.answer()
            await until(lambda: len(harness.groups()) == kept)
            await until(lambda: not harness.management.operations._background)
        assert set(seen) == {ModelState.READY}
        assert job.done

    in_harness(tmp_path, test)


def test_it_is_ready_while_one_of_two_workers_serves(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", initial_workers=2)
        FakeGroup.loading.add("m")
        harness.groups()[0].end(DIED)
        assert harness.registry.find("m").status.state is ModelState.DEGRADED
        assert harness.health.ready()
        harness.groups()[0].end(DIED)
        assert not harness.health.ready()

    in_harness(tmp_path, test)


def test_a_model_that_will_not_come_back(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", "1.0", config="maxRetryTimeoutInSec: 0")
        await harness.register("m", "2.0")
        harness.groups()[0].end(DIED)
        version = harness.registry.find("m", "1.0")
        await until(lambda: version.status.state is ModelState.FAILED)
        assert harness.health.ping() == (500, "Unhealthy")
        await harness.management.set_default("m", "2.0")
        assert harness.health.ping() == (200, "Healthy")  # TorchServe looks at default versions only

    in_harness(tmp_path, test)


def test_fewer_workers_than_wanted_for_good(tmp_path: Path) -> None:
    """TorchServe counts the healthy workers; one that is starting again is."""

    async def test(harness: Harness) -> None:
        await harness.register("m", config="maxRetryTimeoutInSec: 0", initial_workers=2)
        harness.groups()[0].end(DIED)
        await until(lambda: harness.health.ping() == (500, "Unhealthy"))
        assert len(harness.groups()) == 1
        assert harness.health.ready()
        await harness.management.scale("m", None, 1, 1, wait=True)
        assert harness.health.ping() == (200, "Healthy")

    in_harness(tmp_path, test)


def test_a_server_that_is_ending_is_not_ready(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.health.draining = True
        assert not harness.health.ready()
        assert harness.health.not_ready_because() == "the server is shutting down"

    in_harness(tmp_path, test)


# -- ready: at the start all of them once, later one of them --


def test_a_second_version_that_loads_takes_nothing_out_of_service(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", "1.0")
        FakeGroup.loading.add("m")
        await harness.register("m", "2.0", synchronous=False)
        assert harness.health.not_ready_because() == ""
        strict = Health(harness.registry, strict=True)
        strict.begin()
        assert strict.not_ready_because() == "not serving: m"
        FakeGroup.loading.clear()
        await until(strict.ready)

    in_harness(tmp_path, test)


def test_one_broken_model_of_several_takes_nothing_out_of_service(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("good")
        await harness.register("bad", config="maxRetryTimeoutInSec: 0")
        harness.groups("bad")[0].end(DIED)
        await until(lambda: harness.registry.find("bad").status.state is ModelState.FAILED)
        assert harness.health.ready()
        FakeGroup.loading.add("good")
        harness.groups("good")[0].end(DIED)
        assert harness.health.not_ready_because() == "not serving: bad (failed), good"
        FakeGroup.loading.clear()
        await until(harness.health.ready)

    in_harness(tmp_path, test)


def test_only_models_that_want_workers_count(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("idle", initial_workers=0)
        FakeGroup.loading.add("m")
        await harness.register("m", synchronous=False)
        assert harness.health.not_ready_because() == "not serving: m"
        await harness.management.scale("m", None, 0, 0, wait=False)
        await until(harness.health.ready)

    in_harness(tmp_path, test)


def test_each_model_of_the_start_must_have_served_once(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("slow")
        await harness.register("quick")
        await harness.register("idle", initial_workers=0)
        await harness.register("slow", synchronous=False)
        harness.health.begin()
        assert harness.health.not_ready_because() == "not serving: slow"
        FakeGroup.loading.add("quick")
        harness.groups("quick")[0].end(DIED)
        FakeGroup.loading.discard("slow")
        await until(harness.health.ready)
        assert harness.registry.find("quick").workers.ready == 0, "it has served, and comes back"
        FakeGroup.loading.add("later")
        await harness.register("later", synchronous=False)
        assert harness.health.ready(), "it is not of the start"

    in_harness(tmp_path, test)


@pytest.mark.parametrize("remedy", ["unregister", "scale"])
def test_one_that_fails_at_the_start_stops_the_rollout(tmp_path: Path, remedy: str) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.failing.add("bad")
        await harness.register("good")
        await harness.register("bad", config="maxRetryTimeoutInSec: 0", synchronous=False)
        harness.health.begin()
        await until(lambda: harness.registry.find("bad").status.state is ModelState.FAILED)
        assert harness.health.not_ready_because() == "not serving: bad (failed)"
        if remedy == "unregister":
            await harness.management.unregister("bad", None)
        else:
            FakeGroup.failing.clear()
            await harness.management.scale("bad", None, 1, 1, wait=True)
        assert harness.health.ready()

    in_harness(tmp_path, test)


@pytest.mark.parametrize("workers", [0, 1])
def test_one_whose_archive_is_lost_does_too(tmp_path: Path, workers: int) -> None:
    async def before(harness: Harness) -> None:
        await harness.register("good")
        await harness.register("m", initial_workers=workers)
        (harness.root / "m.mar").unlink()

    async def after(harness: Harness) -> None:
        await harness.start()
        harness.health.begin()
        await until(lambda: harness.registry.find("good").workers.ready == 1)
        assert harness.health.not_ready_because() == "not serving: m (failed)"
        await harness.management.unregister("m", None)
        assert harness.health.ready()

    in_harness(tmp_path, before)
    in_harness(tmp_path, after)


def test_what_could_not_be_loaded_at_the_start(tmp_path: Path) -> None:
    """Its name is not known: a model from a file of that name stands for it."""

    async def test(harness: Harness) -> None:
        harness.pack("good")
        (harness.root / "bad.mar").write_bytes(b"PK nonsense")
        startup = Startup(harness.management, harness.state, ("good.mar", "bad.mar"))
        assert len(await startup.load()) == 1
        harness.health.begin(startup.absent)
        await until(lambda: harness.registry.find("good").workers.ready == 1)
        assert harness.health.not_ready_because() == "not serving: bad.mar"
        await harness.register("bad")
        assert harness.health.ready()
        await harness.management.unregister("bad", None)
        assert harness.health.ready()

    in_harness(tmp_path, test)


def test_unhealthy_devices_are_told_but_do_not_make_it_not_ready(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        assert harness.health.detail() == "Ready"
        health = Health(harness.registry, unhealthy_devices=lambda: {3: "Critical", 1: "missing"})
        health.begin()
        assert health.ready()
        assert health.detail() == "Ready; unhealthy devices: 1 (missing), 3 (Critical)"
        health.draining = True
        told = "Not ready: the server is shutting down; unhealthy devices: 1 (missing), 3 (Critical)"
        assert health.detail() == told

    in_harness(tmp_path, test)


def test_a_cluster_that_is_away_is_told_but_does_not_make_it_not_ready(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        health = Health(harness.registry, cluster_problem=lambda: "Ray's head does not answer.")
        health.begin()
        assert health.ready()
        assert health.detail() == "Ready; cluster: Ray's head does not answer"

    in_harness(tmp_path, test)


# -- ready_when=any --


async def remembered(harness: Harness) -> None:
    for name in ("good", "broken"):
        await harness.register(name)


def test_one_of_the_restored_is_enough(tmp_path: Path) -> None:
    async def after(harness: Harness) -> None:
        FakeGroup.loading.add("good")
        FakeGroup.failing.add("broken")
        await harness.start()
        harness.health.begin(one_of={("good", "1.0"), ("broken", "1.0")})
        assert harness.health.not_ready_because() == "not serving: broken, good"
        FakeGroup.loading.clear()
        await until(harness.health.ready)

    in_harness(tmp_path, remembered)
    in_harness(tmp_path, after)


def test_a_new_one_must_serve_in_any_case(tmp_path: Path) -> None:
    """And does not stand for those that were restored."""

    async def after(harness: Harness) -> None:
        FakeGroup.failing.update(("good", "broken"))
        FakeGroup.loading.add("new")
        harness.pack("new")
        startup = Startup(harness.management, harness.state, ("new.mar",))
        await startup.load()
        assert startup.restored == {("good", "1.0"), ("broken", "1.0")}
        harness.health.begin(startup.absent_new, startup.restored)
        assert harness.health.not_ready_because() == "not serving: broken, good, new"
        FakeGroup.loading.clear()
        await until(lambda: harness.registry.find("new").status.served)
        assert harness.health.not_ready_because() == "not serving: broken, good"
        FakeGroup.failing.clear()
        await harness.management.scale("good", None, 2, 2, wait=False)
        await until(harness.health.ready)

    in_harness(tmp_path, remembered)
    in_harness(tmp_path, after)


def test_the_archive_of_a_restored_one_may_be_damaged(tmp_path: Path) -> None:
    async def after(harness: Harness) -> None:
        (harness.root / "broken.mar").write_bytes(b"PK nonsense")
        (harness.root / "new.mar").write_bytes(b"PK nonsense")
        startup = Startup(harness.management, harness.state, ("broken.mar", "new.mar"))
        await startup.load()
        harness.health.begin(startup.absent_new, startup.restored)
        await until(lambda: harness.registry.find("good").status.served)
        assert harness.health.not_ready_because() == "not serving: new.mar"
        assert startup.absent() == ["broken.mar", "new.mar"]

    in_harness(tmp_path, remembered)
    in_harness(tmp_path, after)
