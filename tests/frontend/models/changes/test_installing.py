"""Registrations are saved first, and taken back where no worker has ever served."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import patch

import pytest

from msx_core.service_errors import ModelNotFound
from msx_frontend.management_errors import Conflict, NotSaved, WorkersNotStarted
from msx_frontend.models.describe import describe
from msx_frontend.models.registration import Registration
from msx_frontend.models.state.file import StateStoreError
from msx_frontend.models.traffic import TrafficRule
from msx_frontend.models.versions.states import ModelState
from msx_frontend.snapshots.content import models_of
from tests.frontend.harness import FakeGroup, Harness, in_harness, until

GIVEN_UP_AT_ONCE = "maxRetryTimeoutInSec: 0"


async def given_up(harness: Harness, version: str = "1.0") -> None:
    """A registration that is answered before its workers fail for good."""
    FakeGroup.failing.add("m")
    await harness.register("m", version, GIVEN_UP_AT_ONCE, synchronous=False)
    await until(lambda: harness.registry.find("m", version).forgotten)


def test_it_is_saved_before_a_worker_starts(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        call = asyncio.ensure_future(harness.register("m"))
        await until(harness.groups)
        assert (await harness.stored())["m", "1.0"].min_workers == 1
        FakeGroup.loading.clear()
        await call

    in_harness(tmp_path, test)


def test_one_that_fails_after_its_answer_stays_in_describe_alone(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await given_up(harness)
        described = describe(harness.registry.find("m"))
        assert (described["state"], described["reason"]) == (
            "FAILED",
            "The model could not be loaded: no weights",
        )
        assert await harness.stored() == {}
        assert '"modelCount": 0' in models_of(harness.registry, "snapshot")

    async def restarted(harness: Harness) -> None:
        await harness.start()
        assert harness.registry.names() == []

    in_harness(tmp_path, test)
    in_harness(tmp_path, restarted)


def test_scaling_saves_it_again(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await given_up(harness)
        FakeGroup.failing.clear()
        await harness.management.scale("m", None, 2, 2, wait=True)
        version = harness.registry.find("m")
        assert (version.status.state, version.forgotten) == (ModelState.READY, False)
        assert (await harness.stored())["m", "1.0"].min_workers == 2

    in_harness(tmp_path, test)


@pytest.mark.parametrize("synchronous", [True, False])
def test_it_may_be_registered_again(tmp_path: Path, synchronous: bool) -> None:
    async def test(harness: Harness) -> None:
        await given_up(harness)
        FakeGroup.failing.clear()
        await harness.management.register(Registration(url="m.mar", initial_workers=1, synchronous=synchronous))
        await until(lambda: harness.registry.find("m").status.state is ModelState.READY)
        assert {*await harness.stored()} == {("m", "1.0")}
        await until(lambda: len(harness.metrics.versions) == 1)

    in_harness(tmp_path, test)


def test_it_gets_no_traffic_that_a_restart_would_forget(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        await given_up(harness, "2.0")
        with pytest.raises(Conflict, match=r"^Model m 2\.0 was given up before it served"):
            await harness.management.set_default("m", "2.0")
        with pytest.raises(Conflict, match="scale it, or register it again"):
            await harness.management.divide_traffic("m", TrafficRule({"1.0": 1, "2.0": 1}))
        await harness.management.unregister("m", "2.0")
        assert {*await harness.stored()} == {("m", "1.0")}

    in_harness(tmp_path, test)


def test_one_that_was_answered_202_because_it_waits_is_watched_too(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("other", config="deviceIds: [0]\nexclusiveDevices: true")
        FakeGroup.failing.add("m")
        await harness.register("m", config=f"deviceIds: [0]\nexclusiveDevices: true\n{GIVEN_UP_AT_ONCE}")
        assert harness.registry.find("m").status.state is ModelState.WAITING
        await harness.management.unregister("other", None)
        await until(lambda: harness.registry.find("m").forgotten)

    in_harness(tmp_path, test, npus=1)


def test_the_default_moves_on_where_its_registration_fails(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        FakeGroup.failing.add("m")
        first = asyncio.ensure_future(harness.register("m", "1.0"))
        await until(harness.groups)
        await harness.register("m", "2.0", initial_workers=0)
        await harness.register("m", "3.0", initial_workers=0)
        await harness.management.divide_traffic("m", TrafficRule({"1.0": 1, "3.0": 1}))
        FakeGroup.loading.clear()
        with pytest.raises(WorkersNotStarted):
            await first
        assert harness.registry.find("m").labels == ("m", "2.0")
        assert harness.registry.traffic("m") == TrafficRule({"3.0": 1})
        assert await harness.state.load_traffic() == {"m": TrafficRule({"3.0": 1})}

    in_harness(tmp_path, test)


def test_what_cannot_be_taken_back_in_the_state_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.failing.add("m")
        with (
            patch.object(harness.state._store, "remove_version", side_effect=StateStoreError("the disk is full")),
            pytest.raises(WorkersNotStarted),
        ):
            await harness.register("m")
        assert harness.registry.names() == []
        assert "the registration of model m 1.0 stays in the state: the disk is full" in caplog.text

    in_harness(tmp_path, test)


def test_what_was_never_answered_is_not_known_to_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def killed(harness: Harness) -> None:
        await harness.register("n")
        FakeGroup.loading.add("m")
        call = asyncio.ensure_future(harness.register("m"))
        await until(harness.groups)
        with patch.object(harness.state._store, "remove_version"):  # as by a server that was killed
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

    async def restarted(harness: Harness) -> None:
        await harness.start()
        assert harness.registry.names() == ["n"]
        assert {*await harness.stored()} == {("n", "1.0")}
        assert "model m 1.0 was being registered when the last server ended, and is not known" in caplog.text

    in_harness(tmp_path, killed)
    in_harness(tmp_path, restarted)


def test_a_disk_that_becomes_full_while_the_model_loads(tmp_path: Path) -> None:
    """It has served nobody who was told of it: nothing of it is left."""

    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        call = asyncio.ensure_future(harness.register("m"))
        await until(harness.groups)
        FakeGroup.loading.clear()
        with patch.object(harness.state, "save", side_effect=NotSaved("full")), pytest.raises(NotSaved):
            await call
        assert (harness.registry.names(), await harness.stored(), harness.groups()) == ([], {}, [])

    in_harness(tmp_path, test)


def test_a_wish_for_workers_stays_where_they_fail(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        FakeGroup.failing.add("m")
        with pytest.raises(WorkersNotStarted):
            await harness.management.scale("m", None, 2, 3, wait=True)
        stored = (await harness.stored())["m", "1.0"]
        assert (stored.min_workers, stored.max_workers) == (2, 3)
        assert describe(harness.registry.find("m"))["reason"] == "The model could not be loaded: no weights"

    in_harness(tmp_path, test)


def test_a_wish_that_cannot_be_begun_is_described(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        version = harness.registry.find("m")
        with patch.object(version.workers, "scale", side_effect=WorkersNotStarted("m", "1.0", "No devices.")):
            await harness.management.scale("m", None, 2, 2, wait=False)
            await until(lambda: version.failed_scaling)
        assert "No devices." in describe(version)["failedScaling"]
        assert (await harness.stored())["m", "1.0"].min_workers == 2
        await harness.management.scale("m", None, 1, 1, wait=True)
        assert "failedScaling" not in describe(version)

    in_harness(tmp_path, test)


def test_a_wish_counts_for_the_version_that_takes_the_place_meanwhile(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        FakeGroup.loading.add("m")
        replacing = asyncio.ensure_future(harness.register("m", replace=True, batch_size=3))
        await until(lambda: len(harness.groups()) == 2)
        scaling = asyncio.ensure_future(harness.management.scale("m", None, 3, 3, wait=True))
        FakeGroup.loading.clear()
        await asyncio.gather(replacing, scaling)
        version = harness.registry.find("m")
        assert (version.config.batch_size, version.workers.least) == (3, 3)
        stored = (await harness.stored())["m", "1.0"]
        assert (stored.min_workers, stored.options["batch_size"]) == (3, 3)

    in_harness(tmp_path, test)


def test_a_disk_that_becomes_full_while_a_replacement_loads(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        old = harness.registry.find("m")
        with patch.object(harness.state, "save", side_effect=NotSaved("full")), pytest.raises(NotSaved):
            await harness.register("m", replace=True)
        assert harness.registry.find("m") is old
        assert len(harness.groups()) == 1

    in_harness(tmp_path, test)


def test_a_registration_that_is_unregistered_while_it_loads(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await harness.register("m", synchronous=False)
        await harness.management.unregister("m", None)
        with pytest.raises(ModelNotFound):
            harness.registry.find("m")
        assert await harness.stored() == {}

    in_harness(tmp_path, test)


def test_two_first_versions_at_once_have_one_default(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("m", "1.0").rename(harness.root / "m1.mar")
        harness.pack("m", "2.0").rename(harness.root / "m2.mar")
        wanted = [Registration(url=f"m{number}.mar", initial_workers=1) for number in (1, 2)]
        await asyncio.gather(*map(harness.management.register, wanted))
        default = harness.registry.find("m").labels
        assert [labels for labels, one in (await harness.stored()).items() if one.is_default] == [default]

    in_harness(tmp_path, test)
