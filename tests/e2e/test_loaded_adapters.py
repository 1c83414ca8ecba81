"""Adapters that are loaded while the model runs, by a real server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.llama import EXAMPLE, few_graphs, pack_llama, shallow
from tests.e2e.server import RunningServer, new_store, run_server
from tests.llm.peft_folders import make_adapter

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore, pytest.mark.collectives]

ROOM = "adapters: {loadable: true, maxLoras: 2, maxRank: 8}\n"
SMALL = "slotBuckets: [4]\ncontextBuckets: [256]\nprefillBuckets: [64]\nmaxTotalTokens: 256\n"
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
PROMPT = "Exceptions are " * 8
LIMIT = 240.0
"""Seconds, on a busy machine."""


@contextmanager
def served(folder: Path) -> Iterator[RunningServer]:
    properties = f"adapters_path={folder}/adapters\n"
    with run_server(folder, "--models", "m.mar", properties=properties, ready=False) as server:
        server.wait_ready(LIMIT)
        yield server


def pack(folder: Path, config: str) -> None:
    model = shallow(folder / "model", 2)
    pack_llama(new_store(folder), "m", config, model, model)
    for seed, name in enumerate(("one", "two", "three")):
        make_adapter(model, folder / "adapters" / name, seed, lora_alpha=32.0)


def load(server: RunningServer, name: str, path: str, **body: Any) -> httpx.Response:
    return server.management.post(LOAD, json={"lora_name": name, "lora_path": path, **body})


def text(server: RunningServer, model: str) -> str:
    body = {"model": model, "prompt": PROMPT, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
    reply = server.inference.post("/v1/completions", json=body, timeout=LIMIT)
    assert reply.status_code == 200, reply.text
    found: str = reply.json()["choices"][0]["text"]
    return found


def error(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["message"]


def check_life(server: RunningServer, folder: Path) -> str:
    """-> the text with `one`."""
    plain = text(server, "m")
    done = load(server, "sql", "one")
    assert (done.status_code, done.text) == (200, "Success: LoRA adapter 'sql' added successfully.")
    one = text(server, "sql")
    assert len({plain, one, text(server, "m")}) == 2
    assert load(server, "other", str(folder / "adapters" / "two")).status_code == 200
    assert load(server, "third", "three", base_model_name="m").status_code == 200
    two, three = text(server, "m:other"), text(server, "third")  # for which the device has no third place
    assert len({plain, one, two, three}) == 4
    assert text(server, "sql") == one
    listed = [(model["id"], model.get("parent")) for model in server.inference.get("/v1/models").json()["data"]]
    assert listed == [("m", None), ("m:sql", "m"), ("m:other", "m"), ("m:third", "m")]
    again = load(server, "sql", "two")
    assert (again.status_code, "load_inplace" in again.text) == (400, True)
    assert load(server, "sql", "two", load_inplace=True).status_code == 200
    assert text(server, "sql") == two  # nothing of the first one's keys is in the cache for it
    assert load(server, "sql", "one", load_inplace=True).status_code == 200
    assert server.management.post(UNLOAD, json={"lora_name": "third"}).status_code == 200
    assert error(server.management.post(UNLOAD, json={"lora_name": "third"}))[0] == 404
    refused = server.inference.post("/v1/completions", json={"model": "m:third", "prompt": "x"})
    assert error(refused) == (404, "Model not found: m:third. Its adapters: sql, other.")
    assert text(server, "sql") == one
    return one


def check_changed_files(server: RunningServer, folder: Path) -> None:
    """Only requests with the adapter fail."""
    pids = server.worker_pids("m")
    assert load(server, "brief", "three").status_code == 200
    (folder / "adapters" / "three" / "adapter_model.safetensors").write_bytes(b"x")
    failed = server.inference.post("/v1/completions", json={"model": "brief", "prompt": "x"})
    assert error(failed)[1].endswith("adapter brief: its files have changed since it was loaded; load it again")
    assert failed.status_code == 500
    assert text(server, "m")
    assert server.worker_pids("m") == pids
    assert "adapter_model.safetensors is not a safetensors file" in error(load(server, "cut", "three"))[1]


def test_life(tmp_path: Path) -> None:
    pack(tmp_path, SMALL + ROOM)
    with served(tmp_path) as server:
        check_life(server, tmp_path)
        check_changed_files(server, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("ranks", ["tp2", "pp2"])
def test_life_on_several_ranks(ranks: str, tmp_path: Path) -> None:
    pack(tmp_path, few_graphs((EXAMPLE / f"model-config-{ranks}.yaml").read_text()) + ROOM)
    with served(tmp_path) as server:
        check_life(server, tmp_path)
        check_changed_files(server, tmp_path)


@pytest.mark.long
def test_a_worker_that_starts_again_and_a_server_too(tmp_path: Path) -> None:
    pack(tmp_path, SMALL + ROOM)
    with served(tmp_path) as server:
        one = check_life(server, tmp_path)
        server.kill_worker(server.worker_pids("m")[0], "m")
        assert text(server, "sql") == one
        assert server.management.put("/models/m", params={"min_worker": 2, "synchronous": "true"}).status_code == 200
        assert {text(server, "sql") for _ in range(6)} == {one}
    with served(tmp_path) as server:
        assert text(server, "sql") == one
        shutil.rmtree(tmp_path / "adapters" / "one")
