"""Servables of a start script on fake workers: what is registered, what is told when one fails, and the end of all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_mindspore_serving.script import servables
from msx_mindspore_serving.script.channel import CommandError
from msx_mindspore_serving.script.servables import LoadServable, LoadServables, ScriptServables
from tests.frontend.harness import FakeGroup, Harness, in_harness, until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("add/1", "add/10", "text"):
        (tmp_path / "servables" / name).mkdir(parents=True)
    for name in ("add", "text"):
        (tmp_path / "servables" / name / "servable_config.py").touch()
    (tmp_path / "servables" / "add" / "model-config.yaml").write_text("minWorkers: 5\nmaxWorkers: 5\n")
    return tmp_path / "servables"


def of(folder: Path, name: str, version: int, **options: Any) -> LoadServable:
    return LoadServable(directory=str(folder), name=name, version=version, **options)


async def load(harness: Harness, *wanted: LoadServable, ended: Any = print) -> ScriptServables:
    script = ScriptServables(harness.management, harness.root, ended)
    await script.load(LoadServables(list(wanted)))
    return script


def test_workers_devices_versions_and_what_is_said_to_workers(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def test(harness: Harness) -> None:
        key = "a2tra2tra2tra2tra2traw=="
        script = await load(
            harness,
            of(folder, "add", 10, device_ids=(1, 2), num_parallel_workers=5, dec_key=key),
            of(folder, "add", 1, device_ids=(3,)),
            of(folder, "text", 0, num_parallel_workers=2),
        )
        newest = harness.registry.find("add")
        assert (newest.source.version, newest.workers.ready) == ("10", 2)
        assert sorted(harness.devices_of("add")) == [(1,), (2,)]
        config = newest.config
        assert (config.device_ids, config.raw["servable"]) == ((1, 2), {"functionProcesses": 2})
        start = newest.source.servable
        assert start is not None
        assert (start.directory, start.version, start.dec_key) == (str(folder), 10, b"kkkkkkkkkkkkkkkk")
        assert harness.registry.find("add", "1").workers.ready == 1
        text = harness.registry.find("text")
        assert (text.source.version, text.workers.ready, text.config.device_type) == ("1", 2, "cpu")
        assert "servable" not in (await harness.stored())["add", "10"].options
        success = (
            f"Serving: Start servable success, servable directory: '{folder}', servable name: '%s', version number: %d"
        )
        assert [line for line in caplog.messages if "success" in line] == [
            success % named for named in (("add", 10), ("add", 1), ("text", 1))
        ]
        script.close()

    in_harness(tmp_path, test, npus=4)


@pytest.mark.parametrize(("given", "found"), [("none", "npu"), ("ascend", "npu"), ("gpu", "npu"), ("cpu", "cpu")])
def test_devices_are_those_that_there_are(tmp_path: Path, folder: Path, given: str, found: str) -> None:
    async def test(harness: Harness) -> None:
        script = await load(harness, of(folder, "text", 0, device_ids=(1,), device_type=given))
        assert harness.registry.find("text").workers.device_type == found
        assert harness.devices_of("text") == [(1,) if found == "npu" else ()]
        script.close()

    in_harness(tmp_path, test, npus=2)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"device_ids": (2,)}, {"name": "text", "device": 2}),
        ({"num_parallel_workers": 1}, {"name": "text", "version": 0, "extra": 0}),
    ],
)
def test_a_worker_that_fails(tmp_path: Path, folder: Path, wanted: dict[str, Any], told: dict[str, Any]) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.failing.add("text")
        FakeGroup.loading.add("add")  # the others are not waited for
        with pytest.raises(CommandError) as raised:
            await load(harness, of(folder, "add", 1, device_ids=(0,)), of(folder, "text", 0, **wanted))
        assert raised.value.said == {"kind": "worker", "detail": "no weights", **told}
        FakeGroup.loading.clear()

    in_harness(tmp_path, test)


def test_a_device_that_is_not_there(tmp_path: Path, folder: Path) -> None:
    async def test(harness: Harness) -> None:
        with pytest.raises(CommandError, match="device"):
            await load(harness, of(folder, "text", 0, device_ids=(7,)))

    in_harness(tmp_path, test, npus=1)


def test_the_end_of_all_workers_with_devices_is_the_end(tmp_path: Path, folder: Path) -> None:
    """Others do not count."""

    async def test(harness: Harness) -> None:
        reasons: list[str] = []
        on_device = of(folder, "add", 1, device_ids=(0,))
        with patch.object(servables, "LOOK_EVERY", 0.001):
            script = await load(harness, on_device, of(folder, "text", 0, num_parallel_workers=1), ended=reasons.append)
            await asyncio.sleep(0.01)
            assert reasons == []
            await harness.registry.find("add").workers.scale(0, 0)
            await until(lambda: bool(reasons))
        assert reasons == ["all worker processes that occupy devices have exited"]
        script.close()

    in_harness(tmp_path, test)
