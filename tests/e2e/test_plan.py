"""`msx-serve plan` beside what a worker has: of a model of 410 MB that is served on this CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.llama import EXAMPLE, pack_llama
from tests.e2e.server import RunningServer, new_store, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

TEXTS, CONTEXT, SHORT, CHUNK = 8, 512, 256, 32
YAML = f"""
minWorkers: 1
maxWorkers: 1
maxTotalTokens: {CONTEXT}
slotBuckets: [{TEXTS}]
contextBuckets: [{CONTEXT}]
prefillBuckets: [{CHUNK}]
maxBatchPrefillTokens: {CHUNK}
startupTimeout: 180
"""
SIZES = {
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}


def make_model(folder: Path) -> Path:
    """The example's tokenizer, and random weights."""
    from safetensors.numpy import save_file

    from msx_llm.models.registry import read_config
    from msx_llm.models.weights import shapes

    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(json.loads((EXAMPLE / "config.json").read_text()) | SIZES))
    random = np.random.default_rng(1)
    wanted = shapes(read_config(folder), "model.")
    tensors = {name: random.standard_normal(shape, np.float32) * np.float32(0.02) for name, shape in wanted}
    save_file(tensors, folder / "model.safetensors")
    return folder


def pack_large(store: Path, folder: Path) -> Path:
    (folder / "model-config.yaml").write_text(YAML)
    small = ("generation_config.json", "tokenizer.json", "tokenizer_config.json")
    return pack(
        PackOptions(
            model_name="large",
            version="1.0",
            handler="text_generation",
            serialized_file=str(folder / "model.safetensors"),
            config_file=str(folder / "model-config.yaml"),
            extra_files=",".join([str(folder / "config.json"), *(str(EXAMPLE / file) for file in small)]),
            export_path=store,
        )
    )


def planned(model: Path, context: int) -> int:
    """Bytes of a worker that are the model's."""
    flags = ["--npu", "cpu", "--texts", str(TEXTS), "--context", str(context), "--json"]
    command = [sys.executable, "-m", "msx_frontend.cli.main", "plan", str(model), *flags]
    rank = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["ranks"][0]
    return sum(int(rank[part]) for part in ("weights", "cache", "graphs"))


def resident(server: RunningServer, model: str) -> int:
    """Memory of its worker, after it has answered."""
    body = {"model": model, "prompt": "The cat", "max_tokens": 4}
    assert server.inference.post("/v1/completions", json=body).status_code == 200
    worker = server.management.get(f"/models/{model}").json()[0]["workers"][0]
    return int(worker["memoryUsage"])


@pytest.mark.long
def test_a_workers_memory_is_within_a_tenth_of_the_plan(tmp_path: Path) -> None:
    """Beside a worker of the small example: what both have is not the model's. Activations of 32 tokens are nothing."""
    model, store = make_model(tmp_path / "model"), new_store(tmp_path)
    pack_large(store, model)
    pack_llama(store, "small", YAML.replace(str(CONTEXT), str(SHORT)))
    with run_server(tmp_path, "--models", "large.mar", "small.mar") as server:
        large, small = (resident(server, name) for name in ("large", "small"))
    baseline = small - planned(EXAMPLE, SHORT)
    plan = planned(model, CONTEXT)
    assert plan > 400e6
    told = f"{large >> 20} MiB, {baseline >> 20} of which are any worker's; planned are {plan >> 20}"
    assert large - baseline == pytest.approx(plan, rel=0.1), told
    print(told)
