"""Start scripts and yamls of llm-serving, unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from msx_mindspore_serving.packages.mindspore_serving.client import MindsporeInferenceClient
from tests.e2e.llama import shallow
from tests.e2e.scripts import run_script
from tests.e2e.server import new_store, run_server
from tests.free_ports import free_port

pytestmark = pytest.mark.e2e

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
        client = MindsporeInferenceClient("llama2", f"http://127.0.0.1:{port}")
        whole = client.generate("Sets", max_new_tokens=8).generated_text
        *tokens, last = client.generate_stream("Sets", do_sample=False, max_new_tokens=8)
        assert last.generated_text == whole == "".join(one.token.text for one in tokens if one.token)
        assert "model_path.prefill_model: not needed" in running.log
        assert running.end() == 0


def test_a_server_says_why_the_yamls_model_is_not_served(tmp_path: Path) -> None:
    new_store(tmp_path)
    file = configured(tmp_path / "config.yaml", free_port())
    with run_server(tmp_path, "--llm-serving", str(file), ready=False) as server:
        assert "/nowhere/p.mindir is not there. Serve the weights instead" in server.log.read_text()
