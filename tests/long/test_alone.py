"""A server with one small Llama: a client that names no model, and an evaluation that counts tokens."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.suites import ALONE, checks, outcomes_of
from tests.e2e.llama import EXAMPLE, few_graphs, pack_llama
from tests.e2e.server import RunningServer, new_store, run_server
from tests.long.environments import environment

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.mindspore, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

HERE = Path(__file__).parent
LOAD = 240.0
CLOSE = 1e-3
"""Largest difference of log-likelihoods, which are sums over a few tokens: float32 on both sides."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("alone")
    pack_llama(new_store(folder), "llama", few_graphs((EXAMPLE / "model-config.yaml").read_text()))
    with run_server(folder, "--models", "llama.mar", tokens=True, ready=False) as running:
        running.wait_ready(LOAD)
        yield running


@pytest.fixture(scope="module")
def outcomes(server: RunningServer) -> dict[str, dict[str, str]]:
    return outcomes_of(ALONE, server)


@pytest.mark.parametrize(("name", "check"), checks(ALONE))
def test_client(outcomes: dict[str, dict[str, str]], server: RunningServer, name: str, check: str) -> None:
    assert not outcomes[name][check], f"{outcomes[name][check]}\n{server.tail()}"


@pytest.fixture(scope="module")
def scores(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    assert server.keys is not None
    output = tmp_path_factory.mktemp("scores") / "scores.json"
    arguments = [server.info["inference"], server.keys["inference"]["key"], str(EXAMPLE), str(output)]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(output.parent)}
    done = subprocess.run(
        [environment("evaluation"), str(HERE / "evaluate.py"), *arguments],
        env={**os.environ, **offline},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(output.read_text())
    return told


@pytest.mark.parametrize("way", ["plain", "with special tokens"])
def test_lm_eval_gives_the_log_likelihoods_of_transformers(scores: dict[str, Any], way: str) -> None:
    served, expected = scores[way]["served"], scores[way]["transformers"]
    assert [len(document) for document in served] == [len(document) for document in expected]
    for document, others in zip(served, expected, strict=True):
        assert [value for value, _ in document] == pytest.approx([value for value, _ in others], abs=CLOSE)
        assert [greedy for _, greedy in document] == [greedy for _, greedy in others]


def test_both_ways_differ(scores: dict[str, Any]) -> None:
    """Or the second would prove nothing."""
    assert scores["plain"]["served"] != scores["with special tokens"]["served"]
