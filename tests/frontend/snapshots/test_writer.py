"""Snapshots: what is written, when, and in which order."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msx_frontend.config import ModelDefaults, ServerConfig, Snapshot
from msx_frontend.config.load import load_server_config
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.states import ModelState
from msx_frontend.snapshots.content import NOT_WRITTEN, models_of, properties_of
from msx_frontend.snapshots.files import SnapshotFiles
from msx_frontend.snapshots.serializer import SavedSnapshot
from msx_frontend.snapshots.writer import SnapshotWriter
from msx_net.listening.address import Address
from tests.frontend.harness import Harness, in_harness

VERSION = {
    "defaultVersion": True,
    "marName": "m.mar",
    "minWorkers": 1,
    "maxWorkers": 1,
    "batchSize": 4,
    "maxBatchDelay": 20,
    "responseTimeout": 120,
    "startupTimeout": 120,
    "runtimeType": "python",
}


class Kept:
    """A serializer in memory."""

    def __init__(self) -> None:
        self.saved: list[SavedSnapshot] = []
        self.error: Exception | None = None

    def save(self, snapshot: SavedSnapshot) -> None:
        if self.error:
            raise self.error
        self.saved.append(snapshot)

    def get(self, name: str) -> SavedSnapshot:
        return next(one for one in self.saved if one.name == name)

    def get_last(self) -> SavedSnapshot | None:
        return self.saved[-1] if self.saved else None

    def models(self) -> list[dict[str, Any]]:
        return [json.loads(one.properties["model_snapshot"])["models"] for one in self.saved]


def test_what_it_says_of_the_models(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", config="batchSize: 4\nmaxBatchDelay: 20\n")
        text = models_of(harness.registry, "a-startup.cfg")
        said = json.loads(text)
        assert list(said) == ["name", "modelCount", "created", "models"]
        assert (said["name"], said["modelCount"]) == ("a-startup.cfg", 1)
        assert said["created"] > 1.7e12
        assert said["models"] == {"m": {"1.0": VERSION}}
        assert list(said["models"]["m"]["1.0"]) == list(VERSION)
        assert text == json.dumps(said, indent=2), "Gson's layout"

    in_harness(tmp_path, test)


def test_nodes_of_workflows_are_not_in_them(tmp_path: Path) -> None:
    """Neither in TorchServe's."""

    async def test(harness: Harness) -> None:
        for name in ("m", "w__m"):
            await harness.register(name)
        node = harness.registry.find("w__m")
        node.source = replace(node.source, workflow="w")
        assert list(json.loads(models_of(harness.registry, "a-startup.cfg"))["models"]) == ["m"]

    in_harness(tmp_path, test)


def test_an_archive_from_elsewhere_is_named_by_its_whole_url(tmp_path: Path) -> None:
    """So that another server loads it, too; other users cannot read the file."""
    files, url = SnapshotFiles(tmp_path / "config"), f"file://{tmp_path}/elsewhere/m.mar?signature=1"

    async def first(harness: Harness) -> None:
        (tmp_path / "elsewhere").mkdir()
        harness.pack("m").rename(tmp_path / "elsewhere" / "m.mar")
        await harness.management.register(Registration(url=url))
        writer = SnapshotWriter(files, ServerConfig(), harness.registry)
        writer.startup()
        await writer.close()

    async def second(harness: Harness) -> None:
        assert isinstance(snapshot, Snapshot)
        await harness.start(snapshot=snapshot)
        assert harness.registry.find("m").source.url == url
        assert harness.registry.find("m").status.state is ModelState.READY

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    in_harness(tmp_path / "one", first)
    newest = files.newest()
    assert newest is not None
    assert newest.stat().st_mode & 0o777 == 0o600
    snapshot = load_server_config({}, newest, {})[0].model_snapshot
    in_harness(tmp_path / "two", second)


def test_what_it_says_of_the_settings(tmp_path: Path) -> None:
    config = ServerConfig(
        model_store=tmp_path,
        inference_address=Address("http", "0.0.0.0", 9080),
        job_queue_size=5,
        number_of_npu=2,
        install_py_dep_per_model=True,
        allowed_urls=(re.compile("https://a/.*"), re.compile("file://.*")),
        blacklist_env_vars=re.compile("X.*"),
        models={"m": {"1.0": ModelDefaults(min_workers=2)}},
        disable_token_authorization=True,
        enable_model_api=True,
        load_models=("a.mar",),
        model_snapshot=Snapshot({}),
    )
    assert properties_of(config) == {
        "model_store": str(tmp_path),
        "inference_address": "http://0.0.0.0:9080",
        "job_queue_size": "5",
        "number_of_gpu": "2",
        "install_py_dep_per_model": "true",
        "allowed_urls": "https://a/.*,file://.*",
        "blacklist_env_vars": "X.*",
        "models": '{"m":{"1.0":{"minWorkers":2}}}',
    }
    assert properties_of(ServerConfig()) == {"model_store": str(Path.cwd())}
    assert properties_of(ServerConfig(cache_dir=Path("shared")))["cache_dir"] == str(Path.cwd() / "shared")
    assert {"disable_token_authorization", "enable_model_api"} <= NOT_WRITTEN, "a start says itself that it opens"


def test_what_is_written_configures_the_next_server(tmp_path: Path) -> None:
    files = SnapshotFiles(tmp_path / "logs" / "config")
    given = {"job_queue_size": 5, "model_store": tmp_path, "load_models": ("m.mar",), "allowed_urls": "a,b"}
    config, _ = load_server_config(given, None, {"LOG_LOCATION": str(tmp_path / "none")})

    async def test(harness: Harness) -> None:
        await harness.register("m", config="batchSize: 4\nmaxBatchDelay: 20\n")
        writer = SnapshotWriter(files, config, harness.registry)
        writer.startup()
        await writer.close()

    in_harness(tmp_path, test)
    read, _ = load_server_config({}, files.newest(), {})
    assert (read.job_queue_size, read.model_store, read.load_models) == (5, tmp_path, ())
    assert read.allowed_urls == config.allowed_urls
    assert isinstance(read.model_snapshot, Snapshot)
    assert read.model_snapshot.models["m"]["1.0"].batch_size == 4


def test_when_they_are_taken(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        kept = Kept()
        writer = SnapshotWriter(kept, harness.config, harness.registry)
        harness.on_change.append(writer.changed)
        await harness.register("m")
        await writer_idle()
        writer.startup()
        await harness.management.scale("m", None, 2, 2, wait=True)
        await harness.register("m", "2.0")
        await harness.management.set_default("m", "2.0")
        await harness.management.unregister("m", "1.0")
        await writer_idle()
        await writer.close()
        names = [one.name for one in kept.saved]
        assert [name.rpartition("-")[2] for name in names] == ["startup.cfg", *["snapshot.cfg"] * 4, "shutdown.cfg"]
        assert names == sorted(set(names)), "their names tell their order"
        models = kept.models()
        assert models[0]["m"]["1.0"]["minWorkers"] == 1
        assert models[1]["m"]["1.0"]["minWorkers"] == 2
        assert set(models[2]["m"]) == {"1.0", "2.0"}
        assert models[3]["m"]["2.0"]["defaultVersion"] is True
        assert set(models[4]["m"]) == {"2.0"}
        assert models[5] == models[4]

    in_harness(tmp_path, test)


async def writer_idle() -> None:
    """Run the callbacks that are due soon."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_without_a_serializer_nothing_is_written(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        writer = SnapshotWriter(None, harness.config, harness.registry)
        writer.startup()
        writer.changed()
        await writer.close()

    in_harness(tmp_path, test)


@pytest.mark.parametrize("error", [OSError("No space left"), KeyError("a plugin's bug")])
def test_what_cannot_be_saved_is_logged(tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def test(harness: Harness) -> None:
        kept = Kept()
        kept.error = error
        writer = SnapshotWriter(kept, harness.config, harness.registry)
        writer.startup()
        await writer.close()

    in_harness(tmp_path, test)
    assert caplog.text.count("was not saved") == 2


def test_a_server_that_never_started_leaves_none(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        kept = Kept()
        writer = SnapshotWriter(kept, harness.config, harness.registry)
        writer.changed()
        await writer.close()
        assert kept.saved == []

    in_harness(tmp_path, test)


def test_names_tell_the_order_also_of_what_comes_at_once(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        kept = Kept()
        writer = SnapshotWriter(kept, harness.config, harness.registry)
        writer.startup()
        for _ in range(100):
            writer.changed()
        await writer.close()
        names = [one.name for one in kept.saved]
        assert len(names) == 102
        assert names == sorted(set(names))

    in_harness(tmp_path, test)
