"""Alive, ready, healthy."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from msx_frontend.models.health import Health
from msx_frontend.models.startup import Startup
from msx_frontend.models.states import ModelState
from msx_frontend.workers import endings
from tests.unit.frontend.house import FakeGroup, House, Test, house_of, until
from tests.unit.frontend.jobs import run

DIED = endings.exited(0, 1, 3, "")


def in_a_house(folder: Path, test: Test) -> None:
    async def call() -> None:
        async with house_of(folder) as house:
            house.health.started = True
            await test(house)

    run(call())


def test_a_server_without_models_is_ready_once_it_has_started(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        house.health.started = False
        assert not house.health.ready()
        assert house.health.not_ready_because() == "the server is starting"
        assert house.health.ping() == (200, "Healthy")
        house.health.started = True
        assert house.health.ready()

    in_a_house(tmp_path, test)


def test_it_is_not_ready_while_a_model_loads(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        FakeGroup.loading.add("m")
        await house.register("m", synchronous=False)
        assert not house.health.ready()
        assert house.health.not_ready_because() == "not serving: m"
        assert house.health.ping() == (200, "Healthy")
        FakeGroup.loading.clear()
        await until(house.health.ready)
        assert house.health.not_ready_because() == ""

    in_a_house(tmp_path, test)


def test_a_model_without_wanted_workers_is_not_missing_any(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("m", initial_workers=0)
        assert house.health.ready()
        assert house.health.ping() == (200, "Healthy")

    in_a_house(tmp_path, test)


@pytest.mark.parametrize("kept", [0, 1])
def test_workers_that_are_told_to_go_are_not_missing(tmp_path: Path, kept: int) -> None:
    """However long their last requests take: nobody takes the server out of its pool for that."""

    async def test(house: House) -> None:
        await house.register("m", initial_workers=2)
        version = house.registry.find("m")
        job = house.submit("m")
        await until(lambda: any(group.jobs for group in house.groups()))
        seen: list[ModelState] = []
        with patch.object(version._standing, "move", lambda state: seen.append(state)):
            await house.management.scale("m", None, kept, kept, wait=False)
            await until(lambda: version.ready_workers == kept)
            assert (house.health.ready(), house.health.ping()) == (True, (200, "Healthy"))
            for group in house.groups():
                group.answer()
            await until(lambda: len(house.groups()) == kept)
            await until(lambda: not house.management.operations._background)
        assert set(seen) == {ModelState.READY}
        assert job.done

    in_a_house(tmp_path, test)


def test_it_is_ready_while_one_of_two_workers_serves(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("m", initial_workers=2)
        FakeGroup.loading.add("m")
        house.groups()[0].end(DIED)
        assert house.registry.find("m").state is ModelState.DEGRADED
        assert house.health.ready()
        house.groups()[0].end(DIED)
        assert not house.health.ready()

    in_a_house(tmp_path, test)


def test_a_model_that_will_not_come_back(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("m", "1.0", config="maxRetryTimeoutInSec: 0")
        await house.register("m", "2.0")
        house.groups()[0].end(DIED)
        version = house.registry.find("m", "1.0")
        await until(lambda: version.state is ModelState.FAILED)
        assert house.health.ping() == (500, "Unhealthy")
        await house.management.set_default("m", "2.0")
        assert house.health.ping() == (200, "Healthy")  # TorchServe looks at default versions only

    in_a_house(tmp_path, test)


def test_fewer_workers_than_wanted_for_good(tmp_path: Path) -> None:
    """TorchServe counts the healthy workers; one that is starting again is."""

    async def test(house: House) -> None:
        await house.register("m", config="maxRetryTimeoutInSec: 0", initial_workers=2)
        house.groups()[0].end(DIED)
        await until(lambda: house.health.ping() == (500, "Unhealthy"))
        assert len(house.groups()) == 1
        assert house.health.ready()
        await house.management.scale("m", None, 1, 1, wait=True)
        assert house.health.ping() == (200, "Healthy")

    in_a_house(tmp_path, test)


def test_a_server_that_is_ending_is_not_ready(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        house.health.draining = True
        assert not house.health.ready()
        assert house.health.not_ready_because() == "the server is shutting down"

    in_a_house(tmp_path, test)


# -- ready: at the start all of them once, later one of them --


def test_a_second_version_that_loads_takes_nothing_out_of_service(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("m", "1.0")
        FakeGroup.loading.add("m")
        await house.register("m", "2.0", synchronous=False)
        assert house.health.not_ready_because() == ""
        strict = Health(house.registry, strict=True)
        strict.begin()
        assert strict.not_ready_because() == "not serving: m"
        FakeGroup.loading.clear()
        await until(strict.ready)

    in_a_house(tmp_path, test)


def test_one_broken_model_of_several_takes_nothing_out_of_service(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("good")
        await house.register("bad", config="maxRetryTimeoutInSec: 0")
        house.groups("bad")[0].end(DIED)
        await until(lambda: house.registry.find("bad").state is ModelState.FAILED)
        assert house.health.ready()
        FakeGroup.loading.add("good")
        house.groups("good")[0].end(DIED)
        assert house.health.not_ready_because() == "not serving: bad (failed), good"
        FakeGroup.loading.clear()
        await until(house.health.ready)

    in_a_house(tmp_path, test)


def test_only_models_that_want_workers_count(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("idle", initial_workers=0)
        FakeGroup.loading.add("m")
        await house.register("m", synchronous=False)
        assert house.health.not_ready_because() == "not serving: m"
        await house.management.scale("m", None, 0, 0, wait=False)
        await until(house.health.ready)

    in_a_house(tmp_path, test)


def test_each_model_of_the_start_must_have_served_once(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        FakeGroup.loading.add("slow")
        await house.register("quick")
        await house.register("idle", initial_workers=0)
        await house.register("slow", synchronous=False)
        house.health.begin()
        assert house.health.not_ready_because() == "not serving: slow"
        FakeGroup.loading.add("quick")
        house.groups("quick")[0].end(DIED)
        FakeGroup.loading.discard("slow")
        await until(house.health.ready)
        assert house.registry.find("quick").ready_workers == 0, "it has served, and comes back"
        FakeGroup.loading.add("later")
        await house.register("later", synchronous=False)
        assert house.health.ready(), "it is not of the start"

    in_a_house(tmp_path, test)


@pytest.mark.parametrize("remedy", ["unregister", "scale"])
def test_one_that_fails_at_the_start_stops_the_rollout(tmp_path: Path, remedy: str) -> None:
    async def test(house: House) -> None:
        FakeGroup.failing.add("bad")
        await house.register("good")
        await house.register("bad", config="maxRetryTimeoutInSec: 0", synchronous=False)
        house.health.begin()
        await until(lambda: house.registry.find("bad").state is ModelState.FAILED)
        assert house.health.not_ready_because() == "not serving: bad (failed)"
        if remedy == "unregister":
            await house.management.unregister("bad", None)
        else:
            FakeGroup.failing.clear()
            await house.management.scale("bad", None, 1, 1, wait=True)
        assert house.health.ready()

    in_a_house(tmp_path, test)


@pytest.mark.parametrize("workers", [0, 1])
def test_one_whose_archive_is_lost_does_too(tmp_path: Path, workers: int) -> None:
    async def before(house: House) -> None:
        await house.register("good")
        await house.register("m", initial_workers=workers)
        (house.root / "m.mar").unlink()

    async def after(house: House) -> None:
        await house.start()
        house.health.begin()
        await until(lambda: house.registry.find("good").ready_workers == 1)
        assert house.health.not_ready_because() == "not serving: m (failed)"
        await house.management.unregister("m", None)
        assert house.health.ready()

    in_a_house(tmp_path, before)
    in_a_house(tmp_path, after)


def test_what_could_not_be_loaded_at_the_start(tmp_path: Path) -> None:
    """Its name is not known: a model from a file of that name stands for it."""

    async def test(house: House) -> None:
        house.pack("good")
        (house.root / "bad.mar").write_bytes(b"PK nonsense")
        startup = Startup(house.management, house.state, ("good.mar", "bad.mar"))
        assert len(await startup.load()) == 1
        house.health.begin(startup.absent)
        await until(lambda: house.registry.find("good").ready_workers == 1)
        assert house.health.not_ready_because() == "not serving: bad.mar"
        await house.register("bad")
        assert house.health.ready()
        await house.management.unregister("bad", None)
        assert house.health.ready()

    in_a_house(tmp_path, test)
