"""The clients of language models that our engine is tested with, against the real vLLM: the same checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract import suites
from tests.contract.suites import checks, outcomes_of
from tests.e2e.server import RunningServer, new_store
from tests.llm.peft_folders import make_adapter
from tests.vllm.padded_llama import make_padded_llama
from tests.vllm.served import LOAD, NEEDED, PYTHON, pack_vllm, run_vllm
from tests.vllm.tiny_model import make_tiny_model

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.contract,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not PYTHON, reason=NEEDED),
]
"""Seconds: the first run installs packages."""

WITH_BOTH: tuple[suites.Suite | suites.NpmSuite, ...] = (*suites.LAYOUTS, *suites.MEMBERS, *suites.ADAPTED)
SHARED: dict[str, Any] = {
    "block-size": 32,  # vLLM's have 128 tokens on a CPU, more than the prompts that the suites send twice
    "structured-outputs-config": {"backend": "guidance", "disable_any_whitespace": True},  # or it writes nothing else
}
LLAMA = "aliases: [one]\n"
ADAPTED = "aliases: [taught]\ntoolParser: mistral\nreasoningParser: qwen3\nrequestChatTemplate: true\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Models for all suites, two of which are served at the start. vLLM scores no prompts of a model with adapters, and
    does not look at `do_sample`."""
    folder = tmp_path_factory.mktemp("clients")
    store = new_store(folder)
    llama = make_padded_llama(folder / "llama", temperature=0.0)
    adapted = make_padded_llama(folder / "adapted", do_sample=True, temperature=1.5)
    for seed, name in enumerate(("one", "two")):
        make_adapter(adapted, adapted / "adapters" / name, seed, lora_alpha=32.0)
    archives = (
        pack_vllm(store, "adapted", adapted, ADAPTED, **SHARED),
        pack_vllm(store, "llama", llama, LLAMA, **SHARED),
    )
    pack_vllm(store, "vectors", make_tiny_model(folder / "vectors", context=1024), runner="pooling", convert="embed")
    pack_vllm(store, "labels", make_tiny_model(folder / "labels", ("bad", "good")))
    with run_vllm(folder, *archives, tokens=True) as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    """TGI's clients, who name no model, get the oldest, which is `adapted`; then `llama` is alone, then not there."""
    first = outcomes_of(WITH_BOTH, server)
    unregister(server, "adapted")
    second = outcomes_of(suites.ALONE, server)
    unregister(server, "llama")
    for name in ("vectors", "labels"):
        reply = server.register(Path(f"{name}.mar"), startup_timeout=int(LOAD))
        assert reply.status_code == 200, reply.text
    return first | second | outcomes_of(suites.VECTORS, server)


def unregister(server: RunningServer, name: str) -> None:
    assert server.management.delete(f"/models/{name}").status_code == 200


@pytest.mark.parametrize(("name", "check"), checks((*WITH_BOTH, *suites.ALONE, *suites.VECTORS)))
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"
