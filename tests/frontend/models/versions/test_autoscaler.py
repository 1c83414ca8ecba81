"""Workers of a model version that follow the load, in virtual time, with groups that hold their requests."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_core.service_errors import BadRequest, Overloaded, ServiceUnavailable
from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.job import Job
from msx_frontend.management_errors import ResourcesMissing
from msx_frontend.models.autoscaling import timer
from msx_frontend.models.autoscaling.timer import AutoscalingTimer
from msx_frontend.models.describe import describe, kserve_ready
from msx_frontend.models.health import Health
from msx_frontend.models.model_api import ModelApi
from msx_frontend.models.versions.autoscaler import Autoscaler
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.models.versions.workers import VersionWorkers
from msx_frontend.resources.device_reading import DeviceReading
from msx_frontend.workers import group_end
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.replica import ReplicaState
from tests.frontend.devices.fake_accelerator import FakeAccelerator
from tests.frontend.harness import FakeGroup, Harness, in_harness, until
from tests.frontend.jobs import sink_of

ON = (
    "minWorkers: {}\nmaxWorkers: {}\nautoscaling:\n  targetInFlight: 1\n  upDelay: 1\n  downDelay: 10\n  idleTime: 20\n"
)


KILLED = group_end.exited(0, 4711, -signal.SIGKILL, "")
TERMINATED = group_end.exited(0, 4711, -signal.SIGTERM, "")
LOST = group_end.lost(0, "the agent on node a has ended")


@pytest.fixture(autouse=True)
def no_ticks() -> Iterator[None]:
    """Time is what tests say."""
    with patch.object(timer, "INTERVAL", 1e6):
        yield


def scaler(version: ModelVersion) -> Autoscaler:
    assert isinstance(version.workers, VersionWorkers)
    return version.workers.autoscaler


class Clocked:
    """Looks at a version every half second of its own time."""

    def __init__(self, harness: Harness, model: str = "m") -> None:
        self.harness = harness
        self.version: ModelVersion = harness.registry.find(model)
        self.now = time.monotonic() + 10

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.5
            scaler(self.version).look(self.now)

    async def settle(self, workers: int) -> None:
        await until(lambda: self.version.workers.ready == workers == len(self.version.workers.all))

    @property
    def described(self) -> dict[str, Any]:
        found: dict[str, Any] = describe(self.version)["autoscaling"]
        return found

    def answer_all(self) -> None:
        for group in self.harness.groups():
            group.answer()


async def clocked(harness: Harness, least: int = 1, most: int = 4, config: str = "", **wanted: Any) -> Clocked:
    await harness.register(config=ON.format(least, most) + config, **wanted)
    return Clocked(harness)


def test_more_workers_while_requests_wait_and_fewer_when_idle(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness)
        jobs = [harness.submit() for _ in range(9)]
        with caplog.at_level(logging.INFO, "msx.autoscaling"):
            clock.run(1.5)
        await clock.settle(4)
        assert (clock.described["wanted"], clock.described["lastDecision"]["from"]) == (4, 1)
        assert "workers 1 -> 4 (bounds 1 to 4): queue 8" in caplog.text
        assert harness.metrics.autoscaled.labels("m", "1.0", "up").value == 1
        assert clock.version.figures.gauges()["msx_workers_wanted"] == 4
        clock.run(30)
        assert clock.version.workers.ready == 4, "requests are still there"
        while not all(job.done for job in jobs):
            clock.answer_all()
            await asyncio.sleep(0.001)
        clock.run(60)
        await clock.settle(1)
        assert clock.described["lastDecision"]["reason"] == "fewer were enough for 10 s"
        assert clock.version.workers.all[0].number == min(one.number for one in clock.version.workers.all)

    in_harness(tmp_path, test)


def test_a_worker_that_overlaps_leaves_the_request_for_which_another_one_is_started(tmp_path: Path) -> None:
    """Without autoscaling it has the next one, too, however long a batch takes."""

    async def test(harness: Harness) -> None:
        FakeGroup.overlapping.add("m")
        clock = await clocked(harness)
        (group,) = harness.groups()
        jobs = [harness.submit(), harness.submit()]
        await asyncio.sleep(0)
        assert len(group.jobs) == 1
        scaler(clock.version).turn(False)
        jobs.append(harness.submit())
        await asyncio.sleep(0)
        assert len(group.jobs) == 2
        while not all(job.done for job in jobs):
            clock.answer_all()
            await asyncio.sleep(0.001)

    in_harness(tmp_path, test)


def test_to_no_worker_and_back(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 0, 2)
        version = clock.version
        assert version.workers.all == []
        assert kserve_ready(version)["ready"]
        assert Health(harness.registry)._not_serving() == []
        with patch.object(FakeGroup, "loading", {"m"}):
            jobs = [harness.submit() for _ in range(3)]
            await until(lambda: version.workers.all)
            assert Health(harness.registry, strict=True)._not_serving() == []
        await until(lambda: harness.groups() and harness.groups()[0].jobs)
        while not all(job.done for job in jobs):
            clock.answer_all()
            await asyncio.sleep(0.001)
        assert all(sink_of(job).error is None for job in jobs)
        clock.run(19)
        assert len(version.workers.all) == 1
        clock.run(3)
        await clock.settle(0)
        assert clock.described["lastDecision"]["reason"] == "no request for 20 s"

    in_harness(tmp_path, test)


def test_a_load_that_fails_is_told_and_tried_again_after_a_pause(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 0, 2)
        FakeGroup.failing.add("m")
        first = [harness.submit(), harness.submit()]
        await until(lambda: all(job.done for job in first))
        error = sink_of(first[0]).error
        assert isinstance(error, ServiceUnavailable)
        assert "no weights" in error.message
        with pytest.raises(ServiceUnavailable, match="the first request after a pause of 1 s starts it again"):
            harness.submit()
        await until(lambda: clock.version.workers.all == [])
        assert "no weights" in clock.described["reason"]
        assert not kserve_ready(clock.version)["ready"]
        clock.run(2)
        second = harness.submit()
        await until(lambda: second.done)
        with pytest.raises(ServiceUnavailable, match="a pause of 2 s"):
            harness.submit()
        await until(lambda: clock.version.workers.all == [])
        FakeGroup.failing.clear()
        clock.run(3)
        third = harness.submit()
        await until(lambda: harness.groups())
        await until(lambda: harness.groups()[0].jobs)
        clock.answer_all()
        assert sink_of(third).error is None
        assert "reason" not in clock.described

    in_harness(tmp_path, test)


async def kill_load(harness: Harness, end: GroupEnd = KILLED) -> None:
    """The worker that loads is ended, and another one begins to load."""
    await until(lambda: harness.groups())
    (killed,) = harness.groups()
    killed.end(end)
    await until(lambda: harness.groups() and harness.groups() != [killed])


@pytest.mark.parametrize("end", [KILLED, TERMINATED, LOST])
def test_requests_outlive_two_kills_of_the_load_that_they_wait_for(tmp_path: Path, end: GroupEnd) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 0, 2)
        with patch.object(FakeGroup, "loading", {"m"}):
            jobs = [harness.submit(), harness.submit()]
            await kill_load(harness, end)
            await kill_load(harness, end)
            jobs.append(harness.submit())
            assert not any(job.done for job in jobs)
            assert kserve_ready(clock.version)["ready"]
        await until(lambda: harness.groups()[0].jobs)
        while not all(job.done for job in jobs):
            clock.answer_all()
            await asyncio.sleep(0.001)
        assert [sink_of(job).error for job in jobs] == [None] * 3

    in_harness(tmp_path, test)


def test_the_third_kill_in_a_row_is_a_failed_load_and_so_is_each_one_after_it(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 0, 2)
        FakeGroup.loading.add("m")
        job = harness.submit()
        await kill_load(harness)
        await kill_load(harness)
        await last_kill(clock, job, pause=1)
        await last_kill(clock, harness.submit(), pause=2)
        FakeGroup.loading.clear()
        await loaded(harness, clock)
        clock.run(30)
        await clock.settle(0)
        FakeGroup.loading.add("m")
        job = harness.submit()
        await kill_load(harness)
        assert not job.done, "a load that succeeded ends the row"
        job.cancel()

    in_harness(tmp_path, test)


async def last_kill(clock: Clocked, job: Job, pause: int) -> None:
    """The load that the job waits for fails by a kill; the pause after it is over at the end."""
    harness = clock.harness
    await until(lambda: harness.groups())
    harness.groups()[0].end(KILLED)
    await until(lambda: job.done)
    error = sink_of(job).error
    assert isinstance(error, ServiceUnavailable)
    words = f"after a pause of {pause} s starts it again: killed by SIGKILL, perhaps out of memory"
    assert error.message.endswith(words)
    assert dict(error.headers)["retry-after"]
    with pytest.raises(ServiceUnavailable, match=words):
        harness.submit()
    await until(lambda: clock.version.workers.all == [])
    clock.run(3)


async def loaded(harness: Harness, clock: Clocked) -> None:
    job = harness.submit()
    await until(lambda: harness.groups() and harness.groups()[0].jobs)
    clock.answer_all()
    assert sink_of(job).error is None


def test_a_kill_does_not_outlive_max_retry_timeout(tmp_path: Path) -> None:
    """Nothing would start a worker that was given up: it is a failed load, and a later request tries again."""

    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 0, 2, "maxRetryTimeoutInSec: 0\n")
        FakeGroup.loading.add("m")
        job = harness.submit()
        await until(lambda: harness.groups())
        harness.groups()[0].end(KILLED)
        await until(lambda: job.done)
        await until(lambda: clock.version.workers.all == [])
        assert "killed by SIGKILL" in clock.described["reason"]
        FakeGroup.loading.clear()
        clock.run(2)
        await loaded(harness, clock)

    in_harness(tmp_path, test)


def test_a_load_that_crashes_by_itself_fails_at_once(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await clocked(harness, 0, 2)
        FakeGroup.loading.add("m")
        job = harness.submit()
        await until(lambda: harness.groups())
        harness.groups()[0].end(group_end.exited(0, 4711, -signal.SIGSEGV, "Fatal Python error: Segmentation fault"))
        await until(lambda: job.done)
        with pytest.raises(ServiceUnavailable, match=r"signal 11 \(SIGSEGV\). Its last words: Fatal Python error"):
            harness.submit()

    in_harness(tmp_path, test)


def test_with_tickets_the_first_request_alone_waits_for_its_worker(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await clocked(harness, 0, 2, "useJobTicket: true\n")
        job = harness.submit()
        with pytest.raises(Overloaded, match="no job ticket is free"):
            harness.submit()
        await until(lambda: harness.groups() and harness.groups()[0].jobs)
        harness.groups()[0].answer()
        assert sink_of(job).error is None

    in_harness(tmp_path, test)


def test_without_it_a_model_without_workers_refuses(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register(config="minWorkers: 0\n", initial_workers=0)
        with pytest.raises(ServiceUnavailable, match="Please use scale workers API"):
            harness.submit()
        version = harness.registry.find("m")
        assert "autoscaling" not in describe(version)
        scaler(version).look(1e9)
        assert version.workers.all == []

    in_harness(tmp_path, test)


def test_one_worker_waits_for_devices_at_most(tmp_path: Path) -> None:
    tp = "parallelType: tp\nparallelLevel: 2\n"

    async def test(harness: Harness) -> None:
        await harness.register("other", config=tp)
        clock = await clocked(harness, config=tp)
        jobs = [harness.submit() for _ in range(9)]
        clock.run(5)
        await until(lambda: clock.version.workers.ready == 1)
        states = [replica.state for replica in clock.version.workers.all]
        assert states == [ReplicaState.READY, ReplicaState.WAITING]
        assert clock.described["reason"].startswith("wanted 2, 1: waits for devices: m:1.0 needs 2 devices")
        await harness.management.unregister("other", None)
        await clock.settle(2)
        for job in jobs:
            job.cancel()

    in_harness(tmp_path, test, npus=4)


def test_the_operator_sets_the_bounds(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness)
        await harness.management.scale("m", None, 2, 3, wait=True)
        await clock.settle(2)
        jobs = [harness.submit() for _ in range(9)]
        clock.run(2)
        await clock.settle(3)
        await harness.management.scale("m", None, 1, 1, wait=False)
        await until(lambda: len(clock.version.queue.dispatcher.groups) == 1)
        clock.run(20)
        while not all(job.done for job in jobs):
            clock.answer_all()
            await asyncio.sleep(0.001)
        await until(lambda: len(clock.version.workers.all) == 1)

    in_harness(tmp_path, test)


def test_workers_that_leave_end_what_they_have(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 1, 2)
        await harness.management.scale("m", None, 2, 2, wait=True)
        jobs = [harness.submit(), harness.submit()]
        groups = harness.groups()
        version = clock.version
        scaler(version)._replicas.least = 1
        scaler(version)._replicas.resize(1, lambda group: False)
        await asyncio.sleep(0)
        assert len(version.workers.kept) == 1
        assert len(harness.groups()) == 2
        assert not any(job.done for job in jobs)
        for group in groups:
            group.answer()
        assert [sink_of(job).error for job in jobs] == [None, None]
        await clock.settle(1)
        assert harness.groups() == groups[:1], "the newest left"

    in_harness(tmp_path, test)


def test_the_version_ends_while_workers_leave(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 1, 2)
        await harness.management.scale("m", None, 2, 2, wait=True)
        jobs.extend([harness.submit(), harness.submit()])
        scaler(clock.version)._replicas.least = 1
        scaler(clock.version)._replicas.resize(1, lambda group: False)
        await asyncio.sleep(0)
        assert len(harness.groups()) == 2

    jobs = list[Job]()
    in_harness(tmp_path, test)  # it closes the version, and no group may be left
    assert all(job.done for job in jobs)


def test_a_worker_with_an_open_sequence_stays(tmp_path: Path) -> None:
    stateful = "sequenceBatching: true\nsequenceMaxIdleMSec: 60000\nmaxNumSequence: 8\nmaxSequenceJobQueueSize: 4\n"

    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 1, 3, stateful)
        await harness.management.scale("m", None, 3, 3, wait=True)
        await harness.management.scale("m", None, 1, 3, wait=True)
        key = clock.version.queue.dispatcher.sequences._keys.id
        jobs = [harness.submit() for _ in range(3)]
        for number, job in enumerate(jobs):
            assert dict(job.headers)[key], number
        clock.answer_all()
        assert all(job.done for job in jobs)
        clock.run(60)
        assert clock.version.workers.ready == 3
        assert clock.described["wanted"] == 1
        sequences = clock.version.queue.dispatcher.sequences
        for sequence in sequences.open:
            sequences._end(sequence, "it is over")
        clock.run(1)
        await clock.settle(1)

    in_harness(tmp_path, test)


def test_it_is_switched_at_run_time_and_stays_so_after_a_restart(tmp_path: Path) -> None:
    async def first(harness: Harness) -> None:
        api = ModelApi(harness.management, enabled=True)
        await harness.register(config="minWorkers: 1\nmaxWorkers: 4\n")
        version = harness.registry.find("m")
        await api.scale("m", None, {"autoscaling": "true", "synchronous": "true"})
        assert describe(version)["autoscaling"]["targetQueueTime"] == 200
        assert (version.workers.least, version.workers.most) == (1, 4)
        with pytest.raises(BadRequest, match="autoscaling must be true or false, not maybe"):
            await api.scale("m", None, {"autoscaling": "maybe"})
        await api.scale("m", None, {"autoscaling": "false", "synchronous": "true"})
        assert "autoscaling" not in describe(version)
        await api.scale("m", None, {"autoscaling": "true", "min_worker": "0", "max_worker": "2", "synchronous": "true"})

    async def second(harness: Harness) -> None:
        await harness.start()
        version = harness.registry.find("m")
        assert (version.workers.least, version.workers.most) == (0, 2)
        assert version.workers.follow_load

    in_harness(tmp_path, first)
    in_harness(tmp_path, second)


def test_a_minimum_of_one_and_as_many_as_there_are_devices_by_default(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register(config="autoscaling: true\n", initial_workers=None, at_startup=True)
        version = harness.registry.find("m")
        assert (version.workers.least, version.workers.most, len(version.workers.all)) == (1, 3, 1)

    in_harness(tmp_path, test, npus=3)


def read(clock: Clocked, *percents: int | None) -> None:
    """The utilisation of each device is read, after the last look."""
    statuses = {f"f{at}": DeviceStatus("Good", True, percent) for at, percent in enumerate(percents)}
    clock.harness.resources.devices_read(DeviceReading(statuses, clock.now + 0.1))


def waits(harness: Harness, count: int) -> list[Job]:
    return [harness.submit() for _ in range(count)]


def test_a_second_worker_on_a_device_that_has_time_left(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 1, 4, "workersPerDevice: 2\n")
        jobs = waits(harness, 9)
        read(clock, 95, 10)
        clock.run(2)
        await clock.settle(2)
        assert harness.devices_of("m") == [(0,), (1,)], "each device has one before one has two"
        assert "below 80 %" in clock.described["reason"]
        clock.run(5)
        assert len(clock.version.workers.all) == 2, "device 1 was read before its worker had work"
        read(clock, 95, 80)
        clock.run(5)
        assert len(clock.version.workers.all) == 2
        read(clock, 95, 79)
        clock.run(2)
        await clock.settle(3)
        assert harness.devices_of("m")[2:] == [(1,)]
        clock.run(2)
        read(clock, None, None)
        clock.run(2)
        await clock.settle(4)
        assert "reason" not in clock.described
        while not all(job.done for job in jobs):
            clock.answer_all()
            await asyncio.sleep(0)

    in_harness(tmp_path, test, accelerator=FakeAccelerator(2))


def test_without_a_reading_the_queue_alone_decides(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 1, 9, "workersPerDevice: 2\n")
        assert clock.version.workers.most == 4, "two on each device"
        jobs = waits(harness, 9)
        clock.run(2)
        await clock.settle(4)
        assert sorted(harness.devices_of("m")) == [(0,), (0,), (1,), (1,)]
        clock.answer_all()
        for job in jobs:
            job.cancel()

    in_harness(tmp_path, test, npus=2)


def test_nothing_waits_for_a_second_worker_while_all_is_worked_on(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        config = ON.format(1, 2).replace("targetInFlight: 1", "targetInFlight: 0.5")
        await harness.register(config=f"{config}workersPerDevice: 2\n")
        clock, worked_on = Clocked(harness), harness.submit()
        clock.run(0.5)
        read(clock, 10)
        clock.run(5)
        assert len(clock.version.workers.all) == 1
        waits_too = harness.submit()
        clock.run(1)
        await clock.settle(2)
        for job in (worked_on, waits_too):
            job.cancel()

    in_harness(tmp_path, test, accelerator=FakeAccelerator(1))


@pytest.mark.parametrize("way", ["by the load", "by a call"])
def test_the_second_workers_go_first(tmp_path: Path, way: str) -> None:
    async def test(harness: Harness) -> None:
        clock = await clocked(harness, 1, 4, "workersPerDevice: 2\n")
        harness.devices.health.unhealthy[1] = "Critical"
        await harness.management.scale("m", None, 2, 4, wait=True)
        del harness.devices.health.unhealthy[1]
        await harness.management.scale("m", None, 3, 4, wait=True)
        assert harness.devices_of("m") == [(0,), (0,), (1,)], "the newest one is the first on its device"
        if way == "by a call":
            await harness.management.scale("m", None, 2, 2, wait=True)
        else:
            await harness.management.scale("m", None, 2, 4, wait=True)
            clock.run(60)
        await clock.settle(2)
        assert sorted(harness.devices_of("m")) == [(0,), (1,)]

    in_harness(tmp_path, test, npus=2)


def test_by_default_as_many_as_the_devices_take(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        config = "autoscaling: true\nworkersPerDevice: 3\n"
        await harness.register(config=config, initial_workers=None, at_startup=True)
        await harness.register("c", config=f"{config}deviceType: cpu\n", initial_workers=None, at_startup=True)
        bounds = [(one.workers.least, one.workers.most) for one in harness.registry.all_versions()]
        assert bounds == [(1, 6), (1, 1)]

    in_harness(tmp_path, test, npus=2)


def test_what_could_never_start_is_refused_at_registration(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        with pytest.raises(ResourcesMissing):
            await clocked(harness, 0, 2, "parallelType: tp\nparallelLevel: 8\n", initial_workers=None)

    in_harness(tmp_path, test, npus=2)


def test_the_timer_runs_while_some_version_needs_it() -> None:
    seen: list[float] = []

    class Looker:
        def __init__(self, *, breaks: bool = False) -> None:
            self.breaks = breaks

        def look(self, now: float) -> None:
            seen.append(now)
            if self.breaks:
                raise ValueError("broken")

    async def test() -> None:
        of = AutoscalingTimer(iter(range(99)).__next__)
        broken, sound = Looker(breaks=True), Looker()
        assert not of.runs
        with patch.object(timer, "INTERVAL", 0.001):
            of.add(broken)
            of.add(sound)
            await until(lambda: len(seen) >= 4)
        before = len(seen)
        await until(lambda: len(seen) > before)  # the last tick that was set by this interval
        assert of.runs
        of.discard(broken)
        of.wake(broken)
        of.wake(sound)
        of.wake(sound)
        before = len(seen)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(seen) == before + 1
        of.wake(sound)
        of.discard(sound)
        assert not of.runs

    asyncio.run(test())
