"""When `--start --wait` returns, and with what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import patch

from msx_frontend.models.readiness import why_not_ready
from msx_frontend.models.registration import Registration
from msx_frontend.models.state_store import StoredVersion
from msx_frontend.resources import starts
from tests.unit.frontend.house import FAILED, FakeGroup, House, in_a_house, until

LONG = 60.0


def test_it_waits_for_every_model(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("a")
        FakeGroup.loading.add("b")
        await house.register("b", synchronous=False, initial_workers=2)
        waiting = asyncio.ensure_future(why_not_ready(house.registry.all_versions(), LONG))
        await until(lambda: len(house.groups("b")) == 2)
        await asyncio.sleep(0)
        assert not waiting.done()
        FakeGroup.loading.clear()
        assert await waiting == []

    in_a_house(tmp_path, test)


def test_the_first_failure_ends_the_wait(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        FakeGroup.loading |= {"slow", "bad"}
        await house.register("slow", synchronous=False)
        await house.register("bad", synchronous=False)
        waiting = asyncio.ensure_future(why_not_ready(house.registry.all_versions(), LONG))
        await until(lambda: house.groups("bad"))
        house.groups("bad")[0].end(FAILED)
        assert await waiting == ["Model bad 1.0 is not ready: The model could not be loaded: no weights"]

    in_a_house(tmp_path, test)


def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        FakeGroup.loading.add("m")
        await house.register("m", synchronous=False)
        await until(lambda: house.groups())
        assert await why_not_ready(house.registry.all_versions(), 0) == [
            "Model m 1.0 is not ready within --wait-timeout: it is LOADING, initializing."
        ]

    in_a_house(tmp_path, test)


def test_a_model_without_its_archive(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        stored = StoredVersion(
            name="m",
            version="1.0",
            url="m.mar",
            digest="",
            options={},
            min_workers=1,
            max_workers=1,
            is_default=True,
            created_at=0,
        )
        house.management.keep_lost(Registration(url="m.mar", at_startup=True), stored, "m.mar is gone")
        assert await why_not_ready(house.registry.all_versions(), LONG) == ["Model m 1.0 is not ready: m.mar is gone"]

    in_a_house(tmp_path, test)


def test_a_model_that_waits_for_what_others_hold(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        await house.register("o", config="exclusiveDevices: true")
        await house.register("m")
        assert await why_not_ready(house.registry.all_versions(), LONG) == [
            "Model m 1.0 is not ready: m:1.0 needs 1 device, and none of 1 device is left for it: 0 is held by o:1.0."
        ]

    in_a_house(tmp_path, test, npus=1)


def test_memory_may_come_while_it_waits(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        house.memory = 0
        await house.register("m", initial_workers=2)
        [told] = await why_not_ready(house.registry.all_versions(), 0)
        assert told.startswith(
            "Model m 1.0 is not ready within --wait-timeout: it is DEGRADED: m:1.0 needs 1 MB of mem"
        )
        waiting = asyncio.ensure_future(why_not_ready(house.registry.all_versions(), LONG))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        house.memory = 1 << 30
        assert await waiting == []

    with patch.object(starts, "LOOK", 0.001):
        in_a_house(tmp_path, test, parallel_starts=1)


def test_without_models(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        assert await why_not_ready([], LONG) == []

    in_a_house(tmp_path, test)
