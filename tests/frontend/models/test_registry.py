"""Names, versions, defaults."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path

import pytest

from msx_core.generation import Capabilities
from msx_core.methods import MethodInfo
from msx_core.service_errors import (
    HandlerMethodNotFound,
    ModelNotFound,
    ModelVersionNotFound,
    ServiceError,
    ServiceUnavailable,
    WorkerDied,
)
from msx_frontend.job import Field, Job
from msx_frontend.management_errors import Conflict, DefaultVersionInUse
from tests.frontend.harness import Harness, Scenario, open_harness
from tests.frontend.jobs import RecordingSink
from tests.loops import run
from tests.phrases import no_worker


def in_harness(folder: Path, test: Scenario) -> None:
    """With m 1.0 (the default), m 2.0 and n 1.0."""

    async def call() -> None:
        async with open_harness(folder) as harness:
            for model, version in (("m", "1.0"), ("m", "2.0"), ("n", "1.0")):
                await harness.register(model, version, initial_workers=0)
            await test(harness)

    run(call())


def test_finding(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        registry = harness.registry
        assert registry.names() == ["m", "n"]
        assert registry.find("m").labels == ("m", "1.0")
        assert registry.find("m", "2.0").labels == ("m", "2.0")
        assert [version.labels[1] for version in registry.versions_of("m")] == ["1.0", "2.0"]
        assert len(registry.all_versions()) == 3
        assert registry.has("m", "2.0")
        assert not registry.has("m", "3.0")
        assert not registry.has("x", "1.0")
        assert registry.is_default(registry.find("m"))
        assert not registry.is_default(registry.find("m", "2.0"))

    in_harness(tmp_path, test)


def test_each_change_ends_the_epoch_of_known_heads(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        registry, management, names = harness.registry, harness.management, harness.registry.aliases.names

        async def ends(change: Awaitable[object]) -> None:
            before = names.epoch
            await change
            assert not before.is_current
            assert names.epoch.is_current

        await ends(harness.register("n", "2.0", initial_workers=0))
        await ends(management.set_default("n", "2.0"))
        await ends(management.replace_aliases("n", ["o"]))
        before = names.epoch
        assert registry.paths.loaded("n", Capabilities(generate=True)) == ""
        assert not before.is_current
        await ends(management.unregister("m", "2.0"))

    in_harness(tmp_path, test)


def test_methods_are_known_once_a_worker_has_loaded_the_handler(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        version = harness.registry.find("n")
        version.queue.dispatcher.expecting_workers = True
        harness.submit("n", kind="method:x")
        version.schema.methods = (MethodInfo(name="top"), MethodInfo(name=""))
        harness.submit("n", kind="method:top")
        with pytest.raises(
            HandlerMethodNotFound, match=r"""^Model "n" has no method 'x': its methods are top\.$"""
        ) as caught:
            harness.submit("n", kind="packed:x")
        assert caught.value.status == 404
        assert version.queue.dispatcher.waiting == 2

    in_harness(tmp_path, test)


def test_what_is_not_there(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        registry = harness.registry
        with pytest.raises(ModelNotFound, match="Model not found: x"):
            registry.find("x")
        with pytest.raises(ModelVersionNotFound, match=r"Model version: 3\.0 does not exist for model: m"):
            registry.find("m", "3.0")
        with pytest.raises(ModelNotFound):
            registry.versions_of("x")
        with pytest.raises(ModelNotFound):
            registry.set_default("x", "1.0")
        with pytest.raises(ModelVersionNotFound):
            registry.set_default("m", "3.0")
        with pytest.raises(ModelNotFound):
            harness.submit("x")
        with pytest.raises(Conflict, match="already registered"):
            registry.add(registry.find("m"))

    in_harness(tmp_path, test)


def test_the_default(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        registry = harness.registry
        registry.set_default("m", "2.0")
        assert registry.find("m").labels == ("m", "2.0")
        with pytest.raises(DefaultVersionInUse, match="Cannot remove default version for model m"):
            registry.check_removable(registry.find("m"))
        registry.check_removable(registry.find("m", "1.0"))
        registry.check_removable(registry.find("n"))

    in_harness(tmp_path, test)


def test_removal(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        registry = harness.registry
        version = registry.find("m", "2.0")
        registry.remove(version)
        registry.remove(version)
        assert not registry.has("m", "2.0")
        assert version.figures not in harness.metrics.versions
        registry.remove(registry.find("n"))
        assert registry.names() == ["m"]
        await version.close(0)

    in_harness(tmp_path, test)


def test_names_by_the_age_of_their_oldest_version(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        registry = harness.registry
        await harness.register("a", initial_workers=0)
        assert registry.names_by_age() == ["m", "n", "a"]
        await harness.register("m", "3.0", initial_workers=0)
        for number in ("1.0", "2.0"):
            version = registry.find("m", number)
            registry.remove(version)
            await version.close(0)
        assert registry.names_by_age() == ["n", "a", "m"]

    in_harness(tmp_path, test)


def test_a_refusal_is_counted(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        with pytest.raises(ServiceUnavailable, match=no_worker("m")):
            harness.submit("m")
        harness.registry.refuse_new()
        with pytest.raises(ServiceError, match="shutting down"):
            harness.submit("m")
        labels = {"model": "m", "version": "1.0", "code": "503"}
        assert harness.metrics.registry.get_sample_value("msx_requests_total", labels) == 2

    in_harness(tmp_path, test)


class Busy(Job):
    """Job of an API whose clients get 429 for every error."""

    def status_of(self, error: ServiceError) -> int:
        return 429


def test_a_refusal_is_counted_by_the_status_that_its_client_is_told(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        job = Busy("j", "m", None, [Field("body", None, b"")], [], RecordingSink())
        with pytest.raises(ServiceUnavailable, match=no_worker("m")):
            harness.registry.submit(job)
        later = Busy("j", "m", None, [], [], RecordingSink())
        later.fail(WorkerDied("Gone."))
        assert later.status == 429
        assert counted(harness, "429") == 1
        assert counted(harness, "503") is None

    in_harness(tmp_path, test)


def test_a_refusal_is_counted_once_when_its_connection_gives_the_job_up(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        job = Job("j", "m", None, [], [], RecordingSink())
        with pytest.raises(ServiceUnavailable):
            harness.registry.submit(job)
        job.cancel()
        await harness.metrics.expose()
        assert (counted(harness, "503"), counted(harness, "499")) == (1, None)

    in_harness(tmp_path, test)


def counted(harness: Harness, code: str) -> float | None:
    labels = {"model": "m", "version": "1.0", "code": code}
    return harness.metrics.registry.get_sample_value("msx_requests_total", labels)
