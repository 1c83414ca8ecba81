"""Clients of language models with adapters, and with the tool formats and reasoning of several families."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.suites import ADAPTED, checks, outcomes_of
from tests.e2e.llama import DATA, EXAMPLE, few_graphs
from tests.e2e.server import RunningServer, new_store, run_server
from tests.llm.peft_folders import make_adapter
from tests.long.family_models import pack_family, pack_folder

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.mindspore, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

GRAPHS = "maxConcurrent: 8\nslotBuckets: [4]\nprefillBuckets: [64]\nstartupTimeout: 240\n"
FAMILIES = {
    "glm4": "toolParser: glm4\n",
    "phi3": "toolParser: phi4_mini\n",
    "gpt_oss": "toolParser: gpt_oss\n",
    "qwen3": "toolParser: hermes\nreasoningParser: qwen3\n",
}
ADAPTERS = ("one", "two")
LOAD = 400.0


def pack_adapted(store: Path) -> None:
    """The example with two adapters in its archive."""
    folder = store.parent / "adapted"
    for seed, name in enumerate(ADAPTERS):
        make_adapter(EXAMPLE, folder / "adapters" / name, seed, lora_alpha=32.0)
    for name in DATA:
        shutil.copy(EXAMPLE / name, folder)
    yaml = few_graphs((EXAMPLE / "model-config.yaml").read_text())
    pack_folder(store, "adapted", folder, yaml, serialized_file=str(EXAMPLE / "model.safetensors"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("families")
    store = new_store(folder)
    pack_adapted(store)
    for family, config in FAMILIES.items():
        pack_family(store, family, GRAPHS + config)
    archives = [f"{name}.mar" for name in ("adapted", *FAMILIES)]
    properties = "default_llm=adapted\n"
    with run_server(folder, "--models", *archives, properties=properties, tokens=True, ready=False) as running:
        running.wait_ready(LOAD)
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    return outcomes_of(ADAPTED, server)


@pytest.mark.parametrize(("name", "check"), checks(ADAPTED))
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"
