"""Operations on models, and what is left when one fails half-way."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_core.service_errors import BadRequest, ModelNotFound, ServiceUnavailable
from msx_frontend.config import ModelDefaults
from msx_frontend.management_errors import (
    Conflict,
    DefaultVersionInUse,
    InvalidModel,
    NotSaved,
    UnregisterTimedOut,
    WorkersNotStarted,
)
from msx_frontend.models.describe import describe
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.states import ModelState
from msx_frontend.workers import group_end
from tests.frontend.harness import FakeGroup, Harness, in_harness, until
from tests.frontend.jobs import error_of, make_job
from tests.interpreters import stub_interpreter


def assert_nothing_is_left(harness: Harness) -> None:
    assert harness.registry.names() == []
    assert FakeGroup.living == []
    assert harness.contents == 0
    assert harness.metrics.versions == []


# -- register --


def test_a_registration_waits_for_its_workers_and_is_kept(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", initial_workers=2, batch_size=4)
        version = harness.registry.find("m")
        assert (version.status.state, version.workers.ready, version.config.batch_size) == (ModelState.READY, 2, 4)
        stored = (await harness.stored())["m", "1.0"]
        assert (stored.url, stored.min_workers, stored.max_workers, stored.is_default) == ("m.mar", 2, 2, True)
        assert stored.options == {"url": "m.mar", "initial_workers": 2, "batch_size": 4, "rows_compared": True}

    in_harness(tmp_path, test)


def test_a_model_on_an_interpreter_that_cannot_run_workers_is_refused(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        with pytest.raises(InvalidModel, match=r"^m: python: vllm is not an interpreter of this server's key pythons"):
            await harness.register("m", config="python: vllm")
        with pytest.raises(InvalidModel, match=r"^m: python: gone \(.*/gone\) cannot be run: No such file"):
            await harness.register("m", config="python: gone")
        assert_nothing_is_left(harness)

    in_harness(tmp_path, test, pythons=(f"gone={tmp_path / 'gone'}",))


def test_at_the_start_its_workers_try_again_until_the_interpreter_is_there(tmp_path: Path) -> None:
    path = tmp_path / "python"

    async def test(harness: Harness) -> None:
        await harness.register("m", config="python: other", at_startup=True, synchronous=False)
        version = harness.registry.find("m")
        await until(lambda: "cannot be run: No such file" in version.status.reason)
        stub_interpreter(path)
        await until(lambda: version.status.state is ModelState.READY)
        assert describe(version)["interpreter"]["name"] == "other"

    in_harness(tmp_path, test, pythons=(f"other={path}",))


def test_one_that_is_not_synchronous_does_not_wait(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await harness.register("m", synchronous=False)
        assert harness.registry.find("m").status.state is ModelState.LOADING
        FakeGroup.loading.clear()
        await until(lambda: harness.registry.find("m").status.state is ModelState.READY)

    in_harness(tmp_path, test)


def test_the_second_version_is_not_the_default(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", "1.0")
        await harness.register("m", "2.0")
        assert harness.registry.find("m").labels == ("m", "1.0")
        assert not (await harness.stored())["m", "2.0"].is_default

    in_harness(tmp_path, test)


def test_another_name(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", model_name="other")
        assert harness.registry.names() == ["other"]

    in_harness(tmp_path, test)


@pytest.mark.parametrize(
    ("config", "server", "wanted", "counts"),
    [
        ("", {}, {"initial_workers": None}, (0, 0)),
        ("", {"default_workers_per_model": 3}, {"initial_workers": None}, (3, 3)),
        ("", {"default_workers_per_model": 3}, {"initial_workers": 2}, (2, 2)),
        ("minWorkers: 2\nmaxWorkers: 4", {}, {"initial_workers": 1}, (2, 4)),
        ("minWorkers: 2", {}, {"initial_workers": 1}, (2, 2)),
        ("minWorkers: 2", {}, {"initial_workers": 5}, (2, 2)),
        ("minWorkers: 2", {"default_workers_per_model": 3}, {"initial_workers": None}, (2, 2)),
        ("minWorkers: 2", {"npus": 4}, {"initial_workers": None, "at_startup": True}, (2, 2)),
        ("minWorkers: 0", {}, {"initial_workers": 1}, (1, 1)),
        ("maxWorkers: 4", {}, {"initial_workers": 1}, (1, 1)),
        ("", {}, {"initial_workers": None, "at_startup": True}, (1, 1)),
        ("", {"npus": 3}, {"initial_workers": None, "at_startup": True}, (3, 3)),
        ("workersPerDevice: 2", {"npus": 3}, {"initial_workers": None, "at_startup": True}, (3, 3)),
        ("workersPerDevice: 2\nminWorkers: 5", {"npus": 2}, {"initial_workers": 1}, (4, 4)),
        ("minWorkers: 5", {"npus": 2}, {"initial_workers": 1}, (5, 5)),
    ],
)
def test_how_many_workers(
    tmp_path: Path, config: str, server: dict[str, Any], wanted: dict[str, Any], counts: tuple[int, int]
) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config=config, **wanted)
        version = harness.registry.find("m")
        assert (version.workers.least, version.workers.most) == counts
        assert len(harness.groups()) == counts[0]

    in_harness(tmp_path, test, **server)


def test_a_model_that_cannot_be_loaded_leaves_nothing(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.failing.add("m")
        with pytest.raises(WorkersNotStarted) as caught:
            await harness.register("m")
        assert caught.value.message == (
            "Failed to start workers for model m version: 1.0. The model could not be loaded: no weights"
        )
        assert_nothing_is_left(harness)
        assert await harness.stored() == {}

    in_harness(tmp_path, test)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("batchSize: none", r"m: .*batchSize"),
        ("minWorkers: 3\nmaxWorkers: 1", r"m: .*minWorkers"),
    ],
)
def test_a_config_that_cannot_be_meant_leaves_nothing(tmp_path: Path, config: str, words: str) -> None:
    async def test(harness: Harness) -> None:
        unpacked = await harness.store.contents.unpack(harness.pack("m", config="batchSize: 2"))
        folder = harness.root / "m"
        shutil.copytree(unpacked.path, folder)
        await harness.store.contents.release(unpacked.digest)
        (folder / "m-1.0.yaml").write_text(config)
        with pytest.raises(InvalidModel, match=words):
            await harness.management.register(Registration(url="m", initial_workers=1))
        assert_nothing_is_left(harness)

    in_harness(tmp_path, test)


@pytest.mark.parametrize("name", ["a/b", "../up", ".hidden", "a b", "a\n", "m" * 201, "x" * 100_000])
def test_a_name_that_cannot_be_served(tmp_path: Path, name: str) -> None:
    async def test(harness: Harness) -> None:
        with pytest.raises(InvalidModel, match="cannot be served") as caught:
            await harness.register("m", model_name=name)
        assert len(caught.value.message) < 250
        assert_nothing_is_left(harness)

    in_harness(tmp_path, test)


def test_the_same_version_twice(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        with pytest.raises(Conflict, match=r"Model version 1\.0 is already registered for model m"):
            await harness.register("m")
        assert len(harness.groups()) == 1
        assert harness.contents == 1
        assert (await harness.stored()).keys() == {("m", "1.0")}

    in_harness(tmp_path, test)


def test_two_registrations_at_once(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("m")
        wanted = Registration(url="m.mar", initial_workers=1)
        results = await asyncio.gather(*(harness.management.register(wanted) for _ in range(3)), return_exceptions=True)
        assert sum(isinstance(result, Conflict) for result in results) == 2
        assert len(harness.groups()) == 1

    in_harness(tmp_path, test)


def test_a_registration_that_cannot_be_saved_leaves_nothing(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")  # which it does not begin
        with patch.object(harness.state, "save", side_effect=NotSaved("disk full")), pytest.raises(NotSaved):
            await harness.register("m")
        assert_nothing_is_left(harness)

    in_harness(tmp_path, test)


def test_a_registration_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        task = asyncio.ensure_future(harness.register("m"))
        await until(harness.groups)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert_nothing_is_left(harness)

    in_harness(tmp_path, test)


def test_too_few_devices(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        with pytest.raises(WorkersNotStarted, match="deviceIds"):
            await harness.register("m", config="deviceIds: [7]")
        assert_nothing_is_left(harness)

    in_harness(tmp_path, test, npus=2)


# -- replace --


def test_the_old_one_serves_until_the_new_one_is_ready(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        old = harness.registry.find("m")
        job = harness.submit("m")
        FakeGroup.loading.add("m")
        replacing = asyncio.ensure_future(harness.register("m", replace=True, batch_size=3))
        await until(lambda: len(harness.groups()) == 2)
        assert harness.registry.find("m") is old
        FakeGroup.loading.clear()
        await replacing
        assert harness.registry.find("m").config.batch_size == 3
        assert (await harness.stored())["m", "1.0"].options["batch_size"] == 3
        (busy,) = [group for group in harness.groups() if group.jobs]
        busy.answer()
        assert job.status == 200
        await until(lambda: len(harness.groups()) == 1)
        await until(lambda: old.status.state is ModelState.GONE)
        assert harness.contents == 1

    in_harness(tmp_path, test)


def test_a_new_one_that_fails_changes_nothing(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        old = harness.registry.find("m")
        FakeGroup.failing.add("m")
        with pytest.raises(WorkersNotStarted):
            await harness.register("m", replace=True)
        assert harness.registry.find("m") is old
        assert harness.registry.find("m").status.state is ModelState.READY
        assert harness.metrics.versions == [old.figures]
        assert harness.contents == 1

    in_harness(tmp_path, test)


# -- scale --


def test_scaling(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        version = harness.registry.find("m")
        for least, most, expected in ((3, 5, 3), (1, 2, 2), (0, 0, 0), (1, 1, 1)):
            await harness.management.scale("m", None, least, most, wait=True)
            assert (len(harness.groups()), version.workers.ready) == (expected, expected)
            stored = (await harness.stored())["m", "1.0"]
            assert (stored.min_workers, stored.max_workers) == (least, most)

    in_harness(tmp_path, test)


def test_scaling_in_the_background(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        await harness.management.scale("m", None, 2, 2, wait=False)
        await until(lambda: harness.registry.find("m").workers.ready == 2)

    in_harness(tmp_path, test)


def test_scaling_that_cannot_be(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        with pytest.raises(BadRequest, match="max_worker cannot be less than min_worker"):
            await harness.management.scale("m", None, 2, 1, wait=True)
        with pytest.raises(ModelNotFound):
            await harness.management.scale("x", None, 1, 1, wait=False)
        FakeGroup.failing.add("m")
        with pytest.raises(WorkersNotStarted, match="no weights"):
            await harness.management.scale("m", None, 2, 2, wait=True)
        assert harness.registry.find("m").status.state is ModelState.DEGRADED

    in_harness(tmp_path, test)


def test_a_worker_that_failed_once_does_not_hide_another_that_fails_now(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        harness.groups()[0].end(group_end.exited(0, 1, 3, ""))
        await until(lambda: harness.registry.find("m").workers.ready == 1)
        FakeGroup.failing.add("m")
        with pytest.raises(WorkersNotStarted, match="no weights"):
            await harness.management.scale("m", None, 2, 2, wait=True)

    in_harness(tmp_path, test)


# -- the key `models` --

KEY = {"m": {"1.0": ModelDefaults(batch_size=4, max_batch_delay=7, response_timeout=11, min_workers=2, max_workers=3)}}


def test_the_key_models_fills_what_call_and_yaml_leave_out(tmp_path: Path) -> None:
    """TorchServe's order: the call, the yaml, the key, the defaults. Its workers are for the start."""

    async def test(harness: Harness) -> None:
        await harness.register("m", config="maxBatchDelay: 8", response_timeout=12)
        config = harness.registry.find("m").config
        assert (config.batch_size, config.max_batch_delay, config.response_timeout) == (4, 8, 12)
        assert config.startup_timeout == 120
        assert len(harness.groups()) == 1
        await harness.register("n")
        assert harness.registry.find("n").config.batch_size == 1

    in_harness(tmp_path, test, models=KEY)


def test_the_key_models_of_another_version_does_not_count(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", "2.0")
        assert harness.registry.find("m").config.batch_size == 1

    in_harness(tmp_path, test, models=KEY)


def test_the_key_models_at_the_start(tmp_path: Path) -> None:
    key = {"m": {"1.0": ModelDefaults(min_workers=2, max_workers=3), "2.0": ModelDefaults(default_version=True)}}

    async def test(harness: Harness) -> None:
        harness.pack("m", "1.0").rename(harness.root / "m1.mar")
        harness.pack("m", "2.0").rename(harness.root / "m2.mar")
        await harness.start("m1.mar", "m2.mar")
        version = harness.registry.find("m", "1.0")
        assert (version.workers.least, version.workers.most) == (2, 3)
        assert harness.registry.find("m").labels == ("m", "2.0")

    in_harness(tmp_path, test, models=key)


def test_min_workers_alone_in_the_key_models(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        harness.pack("m")
        await harness.start("m.mar")
        version = harness.registry.find("m")
        assert (version.workers.least, version.workers.most) == (2, 2)

    in_harness(tmp_path, test, models={"m": {"1.0": ModelDefaults(min_workers=2)}})


def test_what_an_operator_made_the_default_beats_the_key(tmp_path: Path) -> None:
    key = {"m": {"2.0": ModelDefaults(default_version=True)}}

    async def first(harness: Harness) -> None:
        harness.pack("m", "1.0").rename(harness.root / "m1.mar")
        harness.pack("m", "2.0").rename(harness.root / "m2.mar")
        await harness.start("m1.mar", "m2.mar")
        await harness.management.set_default("m", "1.0")

    async def second(harness: Harness) -> None:
        await harness.start("m1.mar", "m2.mar")
        assert harness.registry.find("m").labels == ("m", "1.0")

    in_harness(tmp_path, first, models=key)
    in_harness(tmp_path, second, models=key)


# -- default, unregister --


def test_the_default_is_kept(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", "1.0")
        await harness.register("m", "2.0")
        await harness.management.set_default("m", "2.0")
        assert harness.registry.find("m").labels == ("m", "2.0")
        assert [one.is_default for one in (await harness.stored()).values()] == [False, True]

    in_harness(tmp_path, test)


def test_unregistering_leaves_nothing(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        await harness.management.unregister("m", None)
        assert_nothing_is_left(harness)
        assert await harness.stored() == {}

    in_harness(tmp_path, test)


def test_a_default_version_goes_last(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", "1.0")
        await harness.register("m", "2.0")
        with pytest.raises(DefaultVersionInUse):
            await harness.management.unregister("m", "1.0")
        await harness.management.unregister("m", "2.0")
        await harness.management.unregister("m", "1.0")
        assert_nothing_is_left(harness)

    in_harness(tmp_path, test)


def test_unregistering_lets_requests_finish(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        running, waiting = harness.submit("m"), harness.submit("m")
        going = asyncio.ensure_future(harness.management.unregister("m", None))
        await until(lambda: not harness.registry.names())
        with pytest.raises(ModelNotFound):
            harness.submit("m")
        await until(harness.management.busy)
        for job in (running, waiting):
            await until(lambda: bool(harness.groups()[0].jobs))
            harness.groups()[0].answer()
            assert job.status == 200
        await going

    in_harness(tmp_path, test)


def test_unregistering_waits_for_so_long(tmp_path: Path) -> None:
    """Then it is told, and the rest goes on: the request is answered, and nothing is left of the version."""

    async def test(harness: Harness) -> None:
        await harness.register("m")
        job = harness.submit("m")
        with pytest.raises(UnregisterTimedOut, match=r"^Timed out while cleaning resources: m\. It takes no more"):
            await harness.management.unregister("m", None)
        assert harness.registry.names() == []
        assert await harness.stored() == {}
        harness.groups()[0].answer()
        assert job.status == 200
        await until(lambda: not harness.contents)

    in_harness(tmp_path, test, unregister_model_timeout=0.01)


def test_jobs_that_a_dying_group_returns_to_a_version_that_goes_are_answered(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        harness.submit("m")
        version = harness.registry.find("m")
        going = asyncio.ensure_future(harness.management.unregister("m", None))
        await until(lambda: version.status.state is ModelState.DRAINING and not version.queue.dispatcher.groups)
        (group,) = harness.groups()
        returned = make_job("ahead")
        group.end(group_end.exited(0, 1, -9, ""))
        group._events.jobs_returned([returned])
        await going
        assert isinstance(error_of(returned), ServiceUnavailable)
        assert len(version.queue.dispatcher.queue) == 0

    in_harness(tmp_path, test)


# -- the end of the server --


def test_at_the_end_no_call_waits_for_workers(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        task = asyncio.ensure_future(harness.register("m"))
        await until(harness.groups)
        harness.management.refuse_new()
        with pytest.raises(ServiceUnavailable, match="shutting down"):
            await task
        with pytest.raises(ServiceUnavailable, match="shutting down"):
            await harness.register("n")
        assert_nothing_is_left(harness)

    in_harness(tmp_path, test)


def test_at_the_end_requests_are_told_why(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        jobs = [harness.submit("m"), harness.submit("m")]
        why = ServiceUnavailable("shutting down")
        harness.management.cancel_all(why)
        assert [error_of(job) for job in jobs] == [why, why]
        assert not harness.management.busy()

    in_harness(tmp_path, test)


def test_the_content_is_looked_at_before_each_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked again when it was changed; when that cannot be, clients hear so at once, until it can."""
    monkeypatch.setattr("msx_frontend.workers.backoff._PAUSES", (0,))

    async def test(harness: Harness) -> None:
        await harness.register("m")
        version = harness.registry.find("m")
        file = version.source.model_dir / "echo.py"
        whole = file.read_text()
        file.write_text("changed")
        harness.groups()[0].end(group_end.exited(0, 1, 3, ""))
        await until(lambda: version.workers.all[0].generation == 2 and version.status.state is ModelState.READY)
        assert file.read_text() == whole
        archive = (harness.root / "m.mar").rename(harness.root / "away.mar")
        shutil.rmtree(version.source.model_dir)
        harness.groups()[0].end(group_end.exited(0, 1, 3, ""))
        job = harness.submit("m")
        await until(lambda: job.done)
        with pytest.raises(
            ServiceUnavailable, match=r"its last load failed.* The unpacked files of m\.mar were changed"
        ):
            harness.submit("m")
        archive.rename(harness.root / "m.mar")
        await until(lambda: version.status.state is ModelState.READY)

    in_harness(tmp_path, test)
