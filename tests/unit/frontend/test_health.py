"""Alive, ready, healthy."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

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
        await house.register("n")
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
        assert not house.health.ready()
        await house.management.set_default("m", "2.0")
        assert house.health.ping() == (200, "Healthy")  # TorchServe looks at default versions only
        assert not house.health.ready()

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
