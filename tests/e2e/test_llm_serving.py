"""Start scripts and yamls of llm-serving, unchanged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from msx_mindspore_serving.packages.mindspore_serving.client import MindsporeInferenceClient
from tests.e2e.llama import EXAMPLE, shallow
from tests.e2e.scripts import RunningScript, run_script
from tests.e2e.server import new_store, run_server, wait_until
from tests.free_ports import free_port
from tests.mindspore_scripts import run_mindspore
from tests.processes import ports_of

pytestmark = pytest.mark.e2e

ROLES = (("prefill", "prefill"), ("decode", "increment"))

SCRIPT = """
import sys
from multiprocessing import Queue
from mindspore_serving.agent.agent_multi_post_method import startup_agents
from mindspore_serving.config.config import ServingConfig, check_valid_config

if __name__ == "__main__":
    queue = Queue(1024)
    config = ServingConfig(sys.argv[1])
    assert check_valid_config(config)
    startup_agents(config, queue)
    print("agents", [queue.get() for _ in config.serving_config.agent_ports], flush=True)
    print("READY", flush=True)
"""


PAIR = """
import json, sys
import numpy as np
import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from tokenizers import Tokenizer

TOKENIZER = Tokenizer.from_file(sys.argv[1])
SIZE, CONTEXT, PROMPT = TOKENIZER.get_vocab_size(), 32, 16


class Layer(nn.Cell):
    def __init__(self, prefill):
        super().__init__()
        self.cache, self.assign = Parameter(Tensor(np.zeros((1, CONTEXT), np.float32))), ops.Assign()
        self.prefill, self.places = prefill, Tensor(np.arange(CONTEXT, dtype=np.float32)[None])

    def construct(self, tokens, length):
        if self.prefill:
            held = ops.concat((tokens, ops.zeros((1, CONTEXT - PROMPT), ms.float32)), 1) * (self.places < length)
        else:
            held = ops.select(self.places == length - 1, ops.tile(tokens, (1, CONTEXT)), self.cache)
        held = ops.depend(held, self.assign(self.cache, held))
        return ops.reduce_sum(held * (self.places < length), 1)


class Net(nn.Cell):
    def __init__(self, prefill):
        super().__init__()
        self.a, self.b = Layer(prefill), Layer(prefill)
        self.ids = Tensor(np.arange(SIZE, dtype=np.float32)[None])

    def construct(self, input_ids, batch_valid_length, batch_index):
        tokens, length = ops.cast(input_ids, ms.float32), ops.cast(batch_valid_length, ms.float32)
        total = self.a(tokens, length) + self.b(tokens, length) + 0 * ops.cast(batch_index, ms.float32)
        return -ops.abs(self.ids - (total - SIZE * ops.floor(total / SIZE)).reshape((1, 1)))


for name, count in (("prefill", PROMPT), ("increment", 1)):
    tokens, length, row = np.zeros((1, count), np.int32), np.ones(1, np.int32), np.zeros(1, np.int64)
    ms.export(Net(name == "prefill"), Tensor(tokens), Tensor(length), Tensor(row), file_name=name, file_format="MINDIR")
for prompt in ("Sets are", "A class"):
    ids = known = TOKENIZER.encode(prompt).ids
    for _ in range(6):
        ids = [*ids, 2 * sum(ids) % SIZE]
    print("text", json.dumps([prompt, TOKENIZER.decode(ids)[len(TOKENIZER.decode(known)) :]]))
"""
"""A model of two layers whose caches are parameters: the next token is twice the sum of all."""


def configured(file: Path, port: int, **more: object) -> Path:
    file.write_text(
        yaml.safe_dump(
            {
                "model_path": {"prefill_model": ["/nowhere/p.mindir"], "decode_model": ["/nowhere/d.mindir"]},
                "model_config": {"model_name": "llama_dyn", "seq_length": [64], "end_token": 2},
                "serving_config": {"agent_ports": [13000, 13001], "server_ip": "127.0.0.1", "server_port": port},
                "tokenizer": {"type": "LlamaTokenizer", "vocab_file": "/nowhere/tokenizer.model"},
                **more,
            }
        )
    )
    return file


def test_what_cannot_be_served_ends_the_script(tmp_path: Path) -> None:
    file = configured(tmp_path / "config.yaml", free_port())
    with run_script(tmp_path, SCRIPT, str(file)) as running:
        assert running.process.wait(60) == 1, running.everything()
        assert "/nowhere/p.mindir is not there. Serve the weights instead" in running.err


def listening(running: RunningScript) -> set[int]:
    """Ports at which the script, its server and its workers listen."""
    return ports_of(running.process.pid).union(*map(ports_of, running.below))


@pytest.mark.mindspore
def test_a_script_with_weights(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    weights = shallow(tmp_path / "weights", 1)
    (weights / "model-config.yaml").write_text(
        "maxTotalTokens: 64\nslotBuckets: [1]\ncontextBuckets: [64]\nprefillBuckets: [16]\n"
    )
    port = free_port()
    file = configured(tmp_path / "config.yaml", port, huggingface=str(weights))
    with run_script(tmp_path, SCRIPT, str(file)) as running:
        running.wait_ready()
        assert "agents [0, 1]" in running.out
        assert listening(running) == {port}, "and none of the agents'"
        client = MindsporeInferenceClient("llama2", f"http://127.0.0.1:{port}")
        whole = client.generate("Sets", max_new_tokens=8).generated_text
        *tokens, last = client.generate_stream("Sets", do_sample=False, max_new_tokens=8)
        assert last.generated_text == whole == "".join(one.token.text for one in tokens if one.token)
        assert "model_path.prefill_model: not needed" in running.log
        assert running.end() == 0


@pytest.mark.mindspore
def test_a_pair_whose_caches_are_parameters(tmp_path: Path) -> None:
    """One text after the other, the first one again at the end."""
    pytest.importorskip("mindspore")
    (tmp_path / "export.py").write_text(PAIR)
    printed = run_mindspore(tmp_path / "export.py", str(EXAMPLE / "tokenizer.json"), folder=tmp_path)
    texts = [json.loads(line.removeprefix("text ")) for line in printed.splitlines() if line.startswith("text ")]
    shutil.copy(EXAMPLE / "tokenizer.json", tmp_path)
    files = {f"{role}_model": [str(tmp_path / f"{name}.mindir")] for role, name in ROLES}
    tokenizer = {"vocab_file": str(tmp_path / "tokenizer.model")}
    model = {"model_name": "llama_dyn", "seq_length": [32], "end_token": 1}
    file = configured(tmp_path / "config.yaml", free_port(), model_path=files, tokenizer=tokenizer, model_config=model)
    new_store(tmp_path)
    with run_server(tmp_path, "--llm-serving", str(file)) as server:
        client = MindsporeInferenceClient("llama2", server.info["inference"])
        for prompt, text in (*texts, texts[0]):
            assert client.generate(prompt, max_new_tokens=6).generated_text == text


def test_a_server_says_why_the_yamls_model_is_not_served(tmp_path: Path) -> None:
    new_store(tmp_path)
    file = configured(tmp_path / "config.yaml", free_port())
    with run_server(tmp_path, "--llm-serving", str(file), ready=False) as server:
        why = "/nowhere/p.mindir is not there. Serve the weights instead"
        wait_until(lambda: why in server.log.read_text(), "the log says why", server.tail)
