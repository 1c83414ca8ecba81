"""The clients that users have, against a small Llama that a real server serves: what they ask of language models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.suites import MEMBERS, checks, outcomes_of
from tests.e2e.llama import DATA, EXAMPLE, few_graphs, pack_llama
from tests.e2e.server import RunningServer, new_store, run_server

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.mindspore, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

CONFIG = few_graphs((EXAMPLE / "model-config.yaml").read_text())
TAUGHT = f"{CONFIG}toolParser: mistral\nreasoningParser: qwen3\nrequestChatTemplate: true\n"
SAMPLED = {"bos_token_id": 0, "eos_token_id": 1, "do_sample": True, "temperature": 1.5}
LOAD = 240.0


def sampled(folder: Path) -> Path:
    """The files of the example, with other defaults of sampling."""
    folder.mkdir()
    for name in DATA:
        shutil.copy(EXAMPLE / name, folder)
    (folder / "generation_config.json").write_text(json.dumps(SAMPLED))
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("long")
    store = new_store(folder)
    pack_llama(store, "llama", CONFIG)
    pack_llama(store, "taught", TAUGHT, sampled(folder / "sampled"))
    with run_server(folder, "--models", "llama.mar", "taught.mar", tokens=True, ready=False) as running:
        running.wait_ready(LOAD)
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    return outcomes_of(MEMBERS, server)


@pytest.mark.parametrize(("name", "check"), checks(MEMBERS))
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"
