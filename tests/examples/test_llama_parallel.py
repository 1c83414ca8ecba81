"""The logits of the example's Llama divided over real ranks, against those of a single rank. What is quicker to compute
stands for them in each change: models with random weights over ranks, and the text that this model makes over ranks."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.core.mindspore_parallel.ranks import Results, results, start
from tests.free_ports import free_port

pytest.importorskip("mindspore")
pytest.importorskip("safetensors")

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, pytest.mark.long]

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama"


def run_ranks(config: dict[str, Any], folder: Path) -> Results:
    port, size = str(free_port()), config["msrun"]["nproc-per-node"]
    group = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOG_v": "4"}
    environ = {**os.environ, **group, "PYTHONPATH": str(EXAMPLE.parents[1])}
    command = [sys.executable, "-m", "tests.examples.llama_rank", str(folder), json.dumps(config)]
    return results(
        [start(command, {**environ, "RANK": str(n), "LOCAL_RANK": str(n)}, folder) for n in range(size)], folder
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside what one rank computes."""
    from tests.examples.llama_rank import write_reference

    folder = tmp_path_factory.mktemp("llama") / "ranks"
    write_reference(folder)
    return folder


@pytest.mark.parametrize("layout", ["tp2", "pp2", "pptp4"])
def test_logits_and_greedy_tokens_are_those_of_one_rank(layout: str, folder: Path) -> None:
    """Twenty prompts; at a first difference the two candidates' logits differ by less than 1e-3."""
    from msx_sdk.mindspore.collectives import disagreement

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    ranks = run_ranks(yaml.safe_load((EXAMPLE / f"model-config-{layout}.yaml").read_text()), folder)
    batches = ranks[0]["batches"]
    assert [batch["rows"] for batch in batches] == [8 * 5, 8 * 5, 4 * 5]
    assert max(batch["difference"] for batch in batches) < 1e-4
    assert max(batch["preference"] for batch in batches) < 1e-3
    assert disagreement({number: rank["counts"] for number, rank in enumerate(ranks)}) is None
