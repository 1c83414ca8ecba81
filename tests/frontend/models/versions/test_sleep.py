"""A version that sleeps refuses requests, and its workers have released their memory before the call returns."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from msx_frontend.job import Job
from msx_frontend.models.describe import describe
from msx_frontend.models.versions.sleep import Asleep, CannotSleep
from msx_frontend.models.versions.states import ModelState
from msx_frontend.workers import group_end
from msx_sdk.generation import SLEEP, Capabilities, SleepRequest
from tests.frontend.harness import FakeGroup, Harness, in_harness, until
from tests.frontend.jobs import error_of, sink_of


async def sleeper(harness: Harness, workers: int = 1) -> None:
    FakeGroup.offers["m"] = Capabilities(generate=True, sleep=True)
    await harness.register("m", initial_workers=workers)


def told(harness: Harness) -> list[int]:
    """The level that each worker is asked for now."""
    jobs = [job for group in harness.groups() for job in group.jobs if job.kind == SLEEP]
    return [level_of(job) for job in jobs]


def level_of(job: Job) -> int:
    return msgspec.msgpack.decode(job.fields[0].data, type=SleepRequest).level


async def change(harness: Harness, level: int) -> None:
    """Every worker does as it is told."""
    call = asyncio.ensure_future(harness.management.change_sleep("m", None, level))
    await until(lambda: told(harness) or call.done())
    for group in harness.groups():
        group.answer()
    await call


def test_it_sleeps_and_wakes(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await sleeper(harness, workers=2)
        version = harness.registry.find("m")
        await change(harness, 2)
        assert (version.status.state, version.sleep.level, version.workers.answer) == (ModelState.ASLEEP, 2, False)
        assert (describe(version)["state"], describe(version)["sleepLevel"]) == ("ASLEEP", 2)
        assert harness.health.not_ready_because()
        with pytest.raises(Asleep, match='Model "m" is asleep') as refused:
            harness.submit()
        assert (refused.value.status, dict(refused.value.headers)["retry-after"] >= "15") == (503, True)
        await change(harness, 0)
        assert (version.status.state, version.sleep.level, version.workers.answer) == (ModelState.READY, 0, True)
        assert "sleepLevel" not in describe(version)
        harness.submit()
        harness.groups()[0].answer()

    in_harness(tmp_path, test)


def test_requests_in_progress_are_waited_for(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await sleeper(harness)
        job = harness.submit()
        call = asyncio.ensure_future(harness.management.change_sleep("m", None, 1))
        await until(lambda: harness.registry.find("m").sleep.level)
        assert told(harness) == []
        with pytest.raises(Asleep):
            harness.submit()
        harness.groups()[0].answer()
        await until(lambda: told(harness))
        assert (sink_of(job).error, told(harness)) == (None, [1])
        harness.groups()[0].answer()
        await call

    in_harness(tmp_path, test)


def test_they_end_after_the_response_timeout(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await sleeper(harness)
        version, job = harness.registry.find("m"), harness.submit()
        object.__setattr__(version, "config", msgspec.structs.replace(version.config, response_timeout=0))
        call = asyncio.ensure_future(harness.management.change_sleep("m", None, 1))
        await until(lambda: job.done)
        assert isinstance(error_of(job), Asleep)
        harness.groups()[0].answer()
        await call

    in_harness(tmp_path, test)


def test_a_worker_that_starts_meanwhile_is_put_to_sleep(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await sleeper(harness)
        await change(harness, 2)
        (group,) = harness.groups()
        group.end(group_end.exited(0, 1, 1, ""))
        await until(lambda: told(harness))
        assert (told(harness), harness.groups() != [group]) == ([2], True)
        harness.groups()[0].answer()

    in_harness(tmp_path, test)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_what_cannot_sleep_is_refused(tmp_path: Path, level: int) -> None:
    """Its handler hears nothing of it, of waking neither."""

    async def test(harness: Harness) -> None:
        await harness.register("m")
        with pytest.raises(CannotSleep, match='Model "m" cannot sleep: only language models on CPUs'):
            await harness.management.change_sleep("m", None, level)
        assert told(harness) == []
        assert harness.registry.find("m").status.state is ModelState.READY

    in_harness(tmp_path, test)
