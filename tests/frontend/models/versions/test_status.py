"""Errors for clients of a version whose workers do not come: at once, and in one line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from msx_core.service_errors import ServiceError, ServiceUnavailable
from msx_frontend.generation.directory import Directory
from msx_frontend.management_errors import RequirementsFailed, WorkersNotStarted
from msx_frontend.models.versions.states import ModelState
from msx_frontend.workers import group_end
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.replica import ReplicaState
from msx_protocol import LoadFailed
from msx_sdk.generation import GENERATE
from tests.frontend.harness import FakeGroup, Harness, in_harness, until
from tests.frontend.jobs import error_of
from tests.phrases import no_worker

BROKEN = group_end.load_failed(
    LoadFailed("FileNotFoundError: [Errno 2] No such file or directory: '/srv/my models/m/w.bin'", "Traceback …", False)
)
KILLED = group_end.exited(0, 4711, -9, "")


async def failed(harness: Harness, end: GroupEnd = BROKEN) -> None:
    """The model's only worker has not loaded; the next one hangs in its load."""
    await harness.register("m", synchronous=False)
    FakeGroup.loading.add("m")
    await until(lambda: harness.groups())
    harness.groups()[0].end(end)
    await until(lambda: harness.groups() and harness.registry.find("m").workers.all[0].generation == 2)


async def of_generation(harness: Harness, number: int) -> FakeGroup:
    await until(lambda: harness.groups() and harness.groups()[0].spec.generation == number)
    return harness.groups()[0]


def refused(harness: Harness, model: str = "m") -> str:
    with pytest.raises(ServiceUnavailable) as caught:
        harness.submit(model)
    assert "\n" not in caught.value.message
    assert "Traceback" not in caught.value.message
    return caught.value.message


def test_a_failed_load_is_told_at_once_until_a_try_has_succeeded(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await failed(harness)
        assert refused(harness) == (
            f"{no_worker('m')}: its last load failed, and it is tried again: "
            "FileNotFoundError: [Errno 2] No such file or directory: 'w.bin'"
        )
        version = harness.registry.find("m")
        assert "/srv/my models/m/w.bin" in version.status.reason, "all of it for the operator"
        assert version.status.state is ModelState.DEGRADED
        FakeGroup.loading.clear()
        await until(lambda: version.status.state is ModelState.READY)
        harness.submit("m")
        harness.groups()[0].answer()

    in_harness(tmp_path, test)


def test_who_waits_when_a_load_fails_is_told_at_once(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await harness.register("m", synchronous=False)
        job = harness.submit("m")  # the first load may well succeed
        await until(lambda: harness.groups())
        harness.groups()[0].end(BROKEN)
        await until(lambda: job.done)
        error = error_of(job)
        assert isinstance(error, ServiceUnavailable)
        assert error.message.endswith("No such file or directory: 'w.bin'")

    in_harness(tmp_path, test)


def test_a_worker_that_has_served_is_waited_for(tmp_path: Path) -> None:
    """Until its successor has failed to load."""

    async def test(harness: Harness) -> None:
        await harness.register("m")
        FakeGroup.loading.add("m")
        harness.groups()[0].end(KILLED)
        job = harness.submit("m")
        version = harness.registry.find("m")
        await until(lambda: version.workers.all[0].state is ReplicaState.RESTARTING and harness.groups())
        assert not job.done
        harness.submit("m")
        harness.groups()[0].end(BROKEN)
        await until(lambda: job.done)
        assert "its last load failed" in refused(harness)

    in_harness(tmp_path, test)


def test_one_that_has_served_is_waited_for_beside_another_that_never_loads(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m")
        FakeGroup.loading.add("m")
        await harness.management.scale("m", None, 2, 2, wait=False)
        await until(lambda: len(harness.groups()) == 2)
        serving, other = harness.groups()
        other.end(BROKEN)
        harness.submit("m")
        serving.answer()
        serving.end(KILLED)
        job = harness.submit("m")
        FakeGroup.loading.clear()
        await until(lambda: job.started)
        harness.registry.find("m").queue.cancel_all(ServiceError("over"))

    in_harness(tmp_path, test)


def test_a_registration_outlives_two_kills_of_its_load(tmp_path: Path) -> None:
    """Requests wait meanwhile. The third kill in a row is the reason that the registration hears."""

    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        registering = asyncio.ensure_future(harness.register("m"))
        for generation in (1, 2):
            (await of_generation(harness, generation)).end(KILLED)
        last = await of_generation(harness, 3)
        job = harness.submit("m")
        assert not registering.done()
        last.end(KILLED)
        with pytest.raises(WorkersNotStarted, match="SIGKILL"):
            await registering
        assert isinstance(error_of(job), ServiceUnavailable)
        assert error_of(job).message.endswith("killed by SIGKILL, perhaps out of memory")

    in_harness(tmp_path, test)


def test_a_version_that_wants_no_workers_has_not_failed_to_load(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await failed(harness)
        await harness.management.scale("m", None, 0, 0, wait=True)
        assert "Please use scale workers API to add workers." in refused(harness)

    in_harness(tmp_path, test)


def test_one_that_is_given_up_says_what_helps(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="maxRetryTimeoutInSec: 0")
        version = harness.registry.find("m")
        harness.groups()[0].end(BROKEN)
        await until(lambda: version.status.state is ModelState.FAILED)
        assert refused(harness) == (
            f"{no_worker('m')}: it was given up after maxRetryTimeoutInSec, until it "
            "is scaled or registered again: FileNotFoundError: [Errno 2] No such file or directory: 'w.bin'"
        )

    in_harness(tmp_path, test)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (group_end.not_started(OSError(12, "Cannot allocate memory")), "[Errno 12] Cannot allocate memory."),
        (group_end.requirements_failed(RequirementsFailed("no parcel", "pip's lines", "m")), "for model m: no parcel"),
        (group_end.exited(0, 4711, -11, "Fatal at /srv/m.py:7 in load"), "Rank 0 (pid 4711) was ended by signal 11"),
        (group_end.load_too_slow(9, "it was initializing"), "raise startupTimeout in model-config.yaml"),
    ],
)
def test_whatever_ended_it(tmp_path: Path, end: GroupEnd, words: str) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await failed(harness, end)
        assert words in refused(harness)
        assert "/srv" not in refused(harness)

    in_harness(tmp_path, test)


def test_language_models_that_do_not_load_are_not_still_loading(tmp_path: Path) -> None:
    """Which operations it offers is not known: that must not hide why."""

    async def test(harness: Harness) -> None:
        FakeGroup.loading.add("m")
        await failed(harness)
        with pytest.raises(ServiceUnavailable, match="its last load failed"):
            Directory(harness.registry).find(None, GENERATE)
        with pytest.raises(ServiceUnavailable, match="its last load failed"):
            harness.submit("m", kind=GENERATE)

    in_harness(tmp_path, test)
