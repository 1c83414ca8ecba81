"""TorchServe's published examples of vLLM, as their pages make them: the same keys, with small random weights."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.vllm.tiny_model import make_adapter, make_tiny_model

SNAPSHOT = "model/models--org--tiny/snapshots/0a1b2c"
ADAPTER = "adapters/model/models--org--sql/snapshots/3d4e5f"
FRONTEND = """
minWorkers: 1
maxWorkers: 1
maxBatchDelay: 100
startupTimeout: 1200
deviceType: "gpu"
asyncCommunication: true
"""
ENGINES = {
    "llama3-8b": """
        max_num_seqs: 16
        max_model_len: 250
        served_model_name:
            - "org/tiny"
            - "llama3-8b"
""",
    "llama-8b-lora": """
        enable_lora: true
        max_loras: 4
        max_cpu_loras: 4
        max_lora_rank: 32
        max_num_seqs: 16
        max_model_len: 250
        served_model_name:
            - "org/tiny-lora"
            - "llama-8b-lora"
""",
    "mistral": """
        max_model_len: 250
        max_num_seqs: 16
        served_model_name:
            - "mistral"
""",
}
EXAMPLES = dict(zip(("llama3", "lora", "mistral"), ENGINES, strict=True))
"""Models by the folders of their examples."""
LORA = f"""
    adapters:
        adapter_1: "{ADAPTER}"
"""


def example_config(name: str, more: str = "") -> str:
    """`more`: further members of `vllm_engine_config`."""
    section = f'\nhandler:\n    model_path: "{SNAPSHOT}"\n    vllm_engine_config:{ENGINES[name]}{more}'
    return f"{FRONTEND}{section}{LORA if name == 'llama-8b-lora' else ''}"


def packed_example(name: str, store: Path, config: str) -> Path:
    """The folder of the model in the store, made by the commands of its page."""
    at = store.parent / f"making-{name}"
    at.mkdir()
    (at / "model-config.yaml").write_text(config)
    command = [str(Path(sys.executable).with_name("msx-archiver")), "--model-name", name, "--version", "1.0"]
    command += ["--handler", "vllm_handler", "--config-file", "model-config.yaml", "--archive-format", "no-archive"]
    subprocess.run(command, check=True, cwd=at)
    make_tiny_model(at / name / SNAPSHOT)
    if name == "llama-8b-lora":
        make_adapter(at / name / ADAPTER)
    return Path(shutil.move(at / name, store / name))
