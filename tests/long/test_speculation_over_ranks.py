"""Prompt look-up and a draft model over the ranks of a real server's groups, with quantised weights and with adapters:
texts and log-probabilities are those of the same requests without it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.llama import DATA, EXAMPLE, few_graphs, pack_llama
from tests.e2e.server import RunningServer, new_store, run_server, wait_until
from tests.llm.peft_folders import make_adapter
from tests.llm.quantised_models import BY_ID, write_quantised

pytest.importorskip("mindspore")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.mindspore,
    pytest.mark.collectives,
    pytest.mark.long,
    pytest.mark.timeout(900),
]
START = 240.0
"""Seconds until all ranks have compiled their graphs, on a machine that is busy."""
MORE = "speculative: {{tokens: 4, method: {}}}\nadapters: {{loadable: true, maxLoras: 2, maxRank: 8}}\n"
WEIGHTS = "model.safetensors"
PROMPTS = ("A list is a list is a list is", "Exceptions are exceptions are exceptions", "0 1 2 0 1 2 0 1 2 0 1")
ADAPTED = "m:own"
LAYOUTS = ("tp2", "pp2")
DRAFT = "draft"
"""The model is its own draft model."""
CASES = [*((layout, case) for layout in LAYOUTS for case in (None, "packed_8", DRAFT)), ("one", DRAFT)]


def pack_model(folder: Path, layout: str, case: str | None) -> None:
    """`case`: how its weights are quantised, or where drafts come from, or None."""
    source, more = EXAMPLE, list[Path]()
    if case == DRAFT:
        more.append(folder / "more")
        shutil.copytree(EXAMPLE, folder / "more" / DRAFT, ignore=lambda _, names: {*names} - {*DATA, WEIGHTS})
    elif case is not None:
        source, _ = write_quantised(EXAMPLE, BY_ID[case], folder)
        for name in DATA:
            if not (source / name).exists():  # it has a config.json of its own
                shutil.copy(EXAMPLE / name, source)
    name = "model-config.yaml" if layout == "one" else f"model-config-{layout}.yaml"
    config = few_graphs((EXAMPLE / name).read_text()) + MORE.format(DRAFT if case == DRAFT else "ngram")
    pack_llama(new_store(folder), "m", config, source, source, *more)
    make_adapter(EXAMPLE, folder / "adapters" / "own", 1, lora_alpha=32.0)


@pytest.fixture(scope="module", params=CASES, ids=str)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("speculation")
    pack_model(folder, *request.param)
    with run_server(
        folder, "--models", "m.mar", properties=f"adapters_path={folder}/adapters\n", ready=False
    ) as running:
        running.wait_ready(START)
        asked = {"lora_name": "own", "lora_path": "own", "base_model_name": "m"}
        assert running.management.post("/v1/load_lora_adapter", json=asked).status_code == 200
        yield running


def said(server: RunningServer, model: str, prompt: str, speculative: bool, **more: Any) -> tuple[str, list[float]]:
    body = {"model": model, "prompt": prompt, "max_tokens": 48, "logprobs": 1, "ignore_eos": True, **more}
    reply = server.inference.post("/v1/completions", json={**body, "speculative": speculative}, timeout=60)
    assert reply.status_code == 200, reply.text
    choice = json.loads(reply.content)["choices"][0]
    return choice["text"], choice["logprobs"]["token_logprobs"]


def accepted(server: RunningServer) -> float:
    text = server.metrics.get("/metrics").text
    return sum(float(value) for value in re.findall(r"^msx_llm_accepted_tokens\S* (\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize("model", ["m", ADAPTED])
@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 0.7, "seed": 5}], ids=["greedy", "sampled"])
def test_texts_are_those_without_it(server: RunningServer, model: str, sampling: dict[str, Any]) -> None:
    for prompt in PROMPTS:
        text, chances = said(server, model, prompt, True, **sampling)
        wanted, own = said(server, model, prompt, False, **sampling)
        assert text == wanted
        assert chances == pytest.approx(own, abs=1e-3)


def test_drafts_were_accepted(server: RunningServer, request: pytest.FixtureRequest) -> None:
    """Drafts of a draft model since the start: one as large as the model is tried, and dropped, as it does not pay."""
    before = 0 if request.node.callspec.params["server"][1] == DRAFT else accepted(server)
    for prompt in PROMPTS:
        said(server, "m", prompt, True, temperature=0)
    wait_until(lambda: accepted(server) > before, "drafts are counted")  # workers tell their counts now and then
