"""Adapters that are loaded while a model runs: which are taken, and what stays."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_core.generation.wire import decode, encode
from msx_core.service_errors import HandlerFailed
from msx_frontend.apis.adapters.family import adapters_api
from msx_frontend.config import ServerConfig
from msx_frontend.generation.directory import Directory
from msx_frontend.job import Job
from msx_frontend.keys.key import Key
from msx_frontend.models.adapter_folder import FILES, AdapterFolder
from msx_frontend.models.loaded_adapters import LoadedAdapters
from msx_sdk.generation import GENERATE, AdapterFiles, Capabilities, LoadAdapterReply, LoadAdapterRequest
from tests.frontend.harness import FakeGroup, Harness, open_harness
from tests.loops import run
from tests.net.http.client import FakeAccessLog, ask
from tests.net.http.exchanges import exchange_of

ABLE = Capabilities(generate=True, adapters=("packed",), load_adapter=True)
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"


class Operator:
    """Workers answer each check at once: with `refusal`, if there is one."""

    def __init__(self, harness: Harness, **config: Any) -> None:
        self.harness, self.refusal = harness, ""
        settings = ServerConfig(**{"adapters_path": harness.folder / "adapters", **config})
        adapters = LoadedAdapters(harness.management, AdapterFolder(settings))
        self._family = adapters_api(harness.registry, adapters)
        self.tokens: Any = None
        self.asked: list[LoadAdapterRequest] = []

    def submit(self, job: Job) -> None:
        self.asked.append(decode(job.fields[0].data, LoadAdapterRequest))
        if self.refusal:
            job.fail(HandlerFailed(400, self.refusal))
        else:
            job.answer(200, "", [], encode(LoadAdapterReply(stamp="s", rank=8)))

    async def ask(self, path: str, **body: Any) -> tuple[int, str]:
        with patch("msx_frontend.models.versions.queue.VersionQueue.submit", lambda queue, job: self.submit(job)):
            app = exchange_of(self._family, log=FakeAccessLog(), tokens=self.tokens)
            reply = await ask(app, "POST", path, json.dumps(body).encode())
        return reply.status, reply.body.decode() if reply.status == 200 else reply.json["error"]["message"]

    async def load(self, name: str, path: str = "sql", **body: Any) -> tuple[int, str]:
        return await self.ask(LOAD, lora_name=name, lora_path=path, **body)

    def loaded(self, model: str = "m") -> dict[str, AdapterFiles]:
        return self.harness.registry.find(model).schema.adapters


@asynccontextmanager
async def operator(
    folder: Path, offers: dict[str, Capabilities] | None = None, **config: Any
) -> AsyncIterator[Operator]:
    for name in FILES:
        (folder / "adapters" / "sql").mkdir(parents=True, exist_ok=True)
        (folder / "adapters" / "sql" / name).write_bytes(b"{}")
    async with open_harness(folder) as harness:
        FakeGroup.offers = offers or {"m": ABLE}
        for model in FakeGroup.offers:
            await harness.register(model)
        yield Operator(harness, **config)


def test_load_and_unload(tmp_path: Path) -> None:
    async def test() -> None:
        async with operator(tmp_path) as one:
            assert await one.load("a") == (200, "Success: LoRA adapter 'a' added successfully.")
            folder = str((tmp_path / "adapters" / "sql").resolve())
            assert one.asked == [LoadAdapterRequest(name="a", folder=folder)]
            first = one.loaded()["a"]
            assert (first.folder, first.stamp) == (folder, "s")
            directory = Directory(one.harness.registry)
            assert directory.find_adapted("a", GENERATE).adapter == "a"
            assert (await one.load("a"))[0] == 400
            assert await one.load("a", load_inplace=True) == (200, "Success: LoRA adapter 'a' added successfully.")
            assert one.loaded()["a"].id != first.id
            assert await one.ask(UNLOAD, lora_name="a") == (200, "Success: LoRA adapter 'a' removed successfully.")
            assert one.loaded() == {}
            assert await one.ask(UNLOAD, lora_name="a") == (404, "The lora adapter 'a' cannot be found.")
            assert (await one.ask(UNLOAD, lora_name="packed", model="m"))[1].endswith("of model m, which keeps it.")

    run(test())


def test_a_restarted_server_has_them(tmp_path: Path) -> None:
    async def test() -> None:
        async with operator(tmp_path) as one:
            await one.load("a")
            wanted = one.loaded()
        async with open_harness(tmp_path) as harness:
            await harness.start()
            assert harness.registry.find("m").schema.adapters == wanted

    run(test())


def test_what_a_worker_refuses_changes_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with operator(tmp_path) as one:
            one.refusal = "adapter a: r is 128, above adapters.maxRank (64); raise that"
            assert await one.load("a") == (400, one.refusal)
            assert one.loaded() == {}

    run(test())


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("../secret", 400, "outside of the folder that adapters_path names"),
        ("/etc", 400, "outside of the folder that adapters_path names"),
        ("link", 400, "outside of the folder that adapters_path names"),
        ("files", 400, "outside of the folder that adapters_path names"),
        ("hf://org/sql", 400, "is a URL; fetch the adapter into adapters_path first"),
        ("none", 404, "No adapter found for 'none': there is no adapter_config.json."),
        ("a\0b", 400, "cannot be read"),
    ],
)
def test_paths(path: str, status: int, reason: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with operator(tmp_path) as one:
            adapters, secret = tmp_path / "adapters", tmp_path / "secret"
            (adapters / "sql").rename(secret)
            (adapters / "link").symlink_to(secret)
            (adapters / "files").mkdir()
            for name in FILES:
                (adapters / "files" / name).symlink_to(secret / name)
            found = await one.load("a", path)
            assert (found[0], reason in found[1]) == (status, True), found
            assert one.asked == []

    run(test())


@pytest.mark.parametrize(
    ("config", "reason"),
    [({"adapters_path": None}, "adapters_path in the server's"), ({"cluster_address": "a:1"}, "in a cluster")],
)
def test_servers_that_load_none(config: dict[str, Any], reason: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with operator(tmp_path, **config) as one:
            status, text = await one.load("a")
            assert (status, reason in text) == (400, True), text

    run(test())


@pytest.mark.parametrize(
    ("name", "reason"), [("a:b", "must have 1 to 128"), ("m", "is a model"), ("packed", "archive")]
)
def test_names(name: str, reason: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with operator(tmp_path) as one:
            status, text = await one.load(name)
            assert (status, reason in text) == (400, True), text

    run(test())


def test_which_model(tmp_path: Path) -> None:
    plain = Capabilities(generate=True)

    async def test() -> None:
        async with operator(tmp_path, {"m": ABLE, "n": ABLE, "p": plain}) as one:
            assert "more than one that could be meant: m, n" in (await one.load("a"))[1]
            assert "Write adapters.loadable: true into its model-config.yaml" in (await one.load("a", model="p"))[1]
            assert (await one.load("a", model="none"))[0] == 404
            assert (await one.load("a", base_model_name="n"))[0] == 200
            assert (one.loaded(), list(one.loaded("n"))) == ({}, ["a"])
            assert (await one.ask(UNLOAD, lora_name="a"))[0] == 200

    run(test())


class OneKey:
    """Good for model `n` alone."""

    def check_any(self, kinds: tuple[str, ...], authorization: str | None) -> Key:
        assert kinds == ("management",)
        return Key(b"", frozenset(kinds), "k", models=frozenset("n"))


@pytest.mark.parametrize("said", [{}, {"model": "m"}])
def test_a_key_for_other_models(said: dict[str, str], tmp_path: Path) -> None:
    async def test() -> None:
        async with operator(tmp_path) as one:
            one.tokens = OneKey()
            assert (await one.load("a", **said))[0] == 403
            assert one.loaded() == {}

    run(test())


def test_there_is_a_most(tmp_path: Path) -> None:
    async def test() -> None:
        with patch("msx_frontend.models.loaded_adapters.MOST", 1):
            async with operator(tmp_path) as one:
                await one.load("a")
                assert "1 loaded adapters, as many as it may" in (await one.load("b"))[1]
                assert (await one.load("a", load_inplace=True))[0] == 200

    run(test())
