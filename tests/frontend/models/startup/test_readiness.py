"""When `--start --wait` returns, and with what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import patch

from msx_frontend.models.registration import Registration
from msx_frontend.models.startup.readiness import why_not_ready
from msx_frontend.models.state.store import StoredVersion
from msx_frontend.resources import starts
from tests.frontend.harness import FAILED, FakeGroup, Harness, in_harness, until

LONG = 60.0


def test_it_waits_for_every_model(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("a")
        FakeGroup.loading.add("b")
        await harness.register("b", synchronous=False, initial_workers=2)
        waiting = asyncio.ensure_future(why_not_ready(harness.registry.all_versions(), LONG))
        await until(lambda: len(harness.groups("b")) == 2)
        await asyncio.sleep(0)
        assert not waiting.done()
        FakeGroup.loading.clear()
        assert await waiting == []

    in_harness(tmp_path, test)


def test_the_first_failure_ends_the_wait(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading |= {"slow", "bad"}
        await harness.register("slow", synchronous=False)
        await harness.register("bad", synchronous=False)
        waiting = asyncio.ensure_future(why_not_ready(harness.registry.all_versions(), LONG))
        await until(lambda: harness.groups("bad"))
        harness.groups("bad")[0].end(FAILED)
        assert await waiting == ["Model bad 1.0 is not ready: The model could not be loaded: no weights"]

    in_harness(tmp_path, test)


def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await harness.register("m", synchronous=False)
        await until(lambda: harness.groups())
        assert await why_not_ready(harness.registry.all_versions(), 0) == [
            "Model m 1.0 is not ready within --wait-timeout: it is LOADING, initializing."
        ]

    in_harness(tmp_path, test)


def test_a_model_without_its_archive(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
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
        harness.management.keep_lost(Registration(url="m.mar", at_startup=True), stored, "m.mar is gone")
        assert await why_not_ready(harness.registry.all_versions(), LONG) == ["Model m 1.0 is not ready: m.mar is gone"]

    in_harness(tmp_path, test)


def test_a_model_that_waits_for_what_others_hold(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("o", config="exclusiveDevices: true")
        await harness.register("m")
        assert await why_not_ready(harness.registry.all_versions(), LONG) == [
            "Model m 1.0 is not ready: m:1.0 needs 1 device, and none of 1 device is left for it: 0 is held by o:1.0."
        ]

    in_harness(tmp_path, test, npus=1)


def test_memory_may_come_while_it_waits(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.memory = 0
        await harness.register("m", initial_workers=2)
        [told] = await why_not_ready(harness.registry.all_versions(), 0)
        assert told.startswith(
            "Model m 1.0 is not ready within --wait-timeout: it is DEGRADED: m:1.0 needs 1 MB of mem"
        )
        waiting = asyncio.ensure_future(why_not_ready(harness.registry.all_versions(), LONG))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        harness.memory = 1 << 30
        assert await waiting == []

    with patch.object(starts, "LOOK", 0.001):
        in_harness(tmp_path, test, parallel_starts=1)


def test_without_models(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        assert await why_not_ready([], LONG) == []

    in_harness(tmp_path, test)
