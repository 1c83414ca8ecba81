"""Names, versions, defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_frontend.errors import (
    Conflict,
    DefaultVersionInUse,
    ModelNotFound,
    ModelVersionNotFound,
    ServiceError,
    ServiceUnavailable,
    WorkerDied,
)
from msx_frontend.job import Field, StatusMappedJob
from tests.unit.frontend.house import House, Test, house_of
from tests.unit.frontend.jobs import RecordingSink, run


def in_a_house(folder: Path, test: Test) -> None:
    """With m 1.0 (the default), m 2.0 and n 1.0."""

    async def call() -> None:
        async with house_of(folder) as house:
            for model, version in (("m", "1.0"), ("m", "2.0"), ("n", "1.0")):
                await house.register(model, version, initial_workers=0)
            await test(house)

    run(call())


def test_finding(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        registry = house.registry
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

    in_a_house(tmp_path, test)


def test_what_is_not_there(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        registry = house.registry
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
            house.submit("x")
        with pytest.raises(Conflict, match="already registered"):
            registry.add(registry.find("m"))

    in_a_house(tmp_path, test)


def test_the_default(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        registry = house.registry
        registry.set_default("m", "2.0")
        assert registry.find("m").labels == ("m", "2.0")
        with pytest.raises(DefaultVersionInUse, match="Cannot remove default version for model m"):
            registry.check_removable(registry.find("m"))
        registry.check_removable(registry.find("m", "1.0"))
        registry.check_removable(registry.find("n"))

    in_a_house(tmp_path, test)


def test_removal(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        registry = house.registry
        version = registry.find("m", "2.0")
        registry.remove(version)
        registry.remove(version)
        assert not registry.has("m", "2.0")
        assert version not in house.metrics.versions
        registry.remove(registry.find("n"))
        assert registry.names() == ["m"]
        await version.close(0)

    in_a_house(tmp_path, test)


def test_names_by_the_age_of_their_oldest_version(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        registry = house.registry
        await house.register("a", initial_workers=0)
        assert registry.names_by_age() == ["m", "n", "a"]
        await house.register("m", "3.0", initial_workers=0)
        for number in ("1.0", "2.0"):
            version = registry.find("m", number)
            registry.remove(version)
            await version.close(0)
        assert registry.names_by_age() == ["n", "a", "m"]

    in_a_house(tmp_path, test)


def test_a_refusal_is_counted(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        with pytest.raises(ServiceUnavailable, match="has no worker"):
            house.submit("m")
        house.registry.refuse_new()
        with pytest.raises(ServiceError, match="shutting down"):
            house.submit("m")
        labels = {"model": "m", "version": "1.0", "code": "503"}
        assert house.metrics.registry.get_sample_value("msx_requests_total", labels) == 2

    in_a_house(tmp_path, test)


def test_a_refusal_is_counted_by_the_status_that_its_client_is_told(tmp_path: Path) -> None:
    async def test(house: House) -> None:
        job = StatusMappedJob(lambda error: 429, "j", "m", None, [Field("body", None, b"")], [], RecordingSink())
        with pytest.raises(ServiceUnavailable, match="has no worker"):
            house.registry.submit(job)
        later = StatusMappedJob(lambda error: 424, "j", "m", None, [], [], RecordingSink())
        later.fail(WorkerDied("Gone."))
        assert later.status == 424
        assert counted(house, "429") == 1
        assert counted(house, "503") is None

    in_a_house(tmp_path, test)


def counted(house: House, code: str) -> float | None:
    labels = {"model": "m", "version": "1.0", "code": code}
    return house.metrics.registry.get_sample_value("msx_requests_total", labels)
