"""A language model that is ready with its first graphs, and compiles the others while it serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.llama import pack_llama, shallow
from tests.e2e.server import RunningServer, new_store, run_server, wait_until

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

CONFIG = """readyAfter: first
slotBuckets: [1, 2]
contextBuckets: [128, 256]
prefillBuckets: [32, 64]
maxTotalTokens: 256
"""
LIMIT = 240.0
"""Seconds, on a busy machine."""


def test_texts_are_the_same_before_and_after_all_graphs_are_compiled_and_from_disk(tmp_path: Path) -> None:
    model = shallow(tmp_path / "model", 1)
    pack_llama(new_store(tmp_path), "m", CONFIG, model, model)
    texts = [life(tmp_path) for _ in range(2)]
    assert len(set(texts)) == 1


def life(folder: Path) -> str:
    """-> the text, of a server that starts and stops."""
    with run_server(folder, "--models", "m.mar", ready=False) as server:
        server.wait_ready(LIMIT)
        early = text(server)
        wait_until(lambda: left(server) == 0, "all graphs are compiled", limit=LIMIT)
        assert text(server) == early
    return early


def left(server: RunningServer) -> Any:
    (described,) = server.management.get("/models/m", params={"customized": "true"}).json()
    return described["customizedMetadata"]["graphs_to_compile"]


def text(server: RunningServer) -> str:
    body = {"model": "m", "prompt": "Exceptions are " * 8, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
    reply = server.inference.post("/v1/completions", json=body, timeout=LIMIT)
    assert reply.status_code == 200, reply.text
    found: str = reply.json()["choices"][0]["text"]
    return found
