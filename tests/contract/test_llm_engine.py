"""The clients that users have, against the engine with a real model, on one rank and divided over two."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.runs import checks_of, run
from tests.e2e.llama import EXAMPLE, few_graphs, pack_llama
from tests.e2e.server import RunningServer, new_store, run_server, wait_until

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.mindspore, pytest.mark.collectives]

MODELS = {"one": "model-config.yaml", "tp2": "model-config-tp2.yaml", "pp2": "model-config-pp2.yaml"}
LOAD = 240.0
"""Seconds, on a busy machine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("engine")
    store = new_store(folder)
    for name, config in MODELS.items():
        pack_llama(store, name, few_graphs((EXAMPLE / config).read_text()))
    with run_server(folder, "--models", *(f"{name}.mar" for name in MODELS), tokens=True, ready=False) as running:
        running.wait_ready(LOAD)
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer, python: str) -> dict[str, str]:
    return run("engine", server, python)


@pytest.mark.parametrize("check", [check for _, check in checks_of("engine")])
def test_client(outcomes: dict[str, str], server: RunningServer, check: str) -> None:
    assert not outcomes[check], f"{outcomes[check]}\n{server.tail()}"


def test_nothing_is_left_of_all_those_requests(server: RunningServer, outcomes: dict[str, str]) -> None:
    """Those of clients that left, too."""
    gauges = ("msx_llm_running", "msx_llm_waiting", "msx_llm_blocks_used")
    wait_until(
        lambda: all(server.metric(gauge, ModelName=model) == 0 for gauge in gauges for model in MODELS),
        "no text runs or waits, and no block is used",
        server.tail,
    )
