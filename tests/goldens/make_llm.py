"""Small random checkpoints of every family, and the logits that Hugging Face transformers computes with them.

    python -m venv hf && hf/bin/pip install torch transformers && hf/bin/python tests/goldens/make_llm.py

Rewrites the folders of tests/goldens/llm. Neither torch nor transformers is a dependency of the project.
"""

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

torch: Any = import_module("torch")
transformers: Any = import_module("transformers")

FOLDER = Path(__file__).parent / "llm"
VOCAB, TOKENS = 96, 48
SIZE = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "llama": ("Llama", {"tie_word_embeddings": True, "rope_parameters": LLAMA3}, torch.float32),
    "llama_biased": ("Llama", {"attention_bias": True, "mlp_bias": True}, torch.float16),
    "mistral": ("Mistral", {"sliding_window": 8, "head_dim": 12}, torch.bfloat16),
    "qwen2": (
        "Qwen2",
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1, "rope_parameters": YARN},
        torch.bfloat16,
    ),
    "qwen3": (
        "Qwen3",
        {"head_dim": 16, "tie_word_embeddings": True, "rope_parameters": LINEAR},
        torch.float16,
    ),
}


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, (family, options, dtype) in CASES.items():
        torch.manual_seed(0)
        config = getattr(transformers, f"{family}Config")(**SIZE, **options)
        make(FOLDER / name, getattr(transformers, f"{family}ForCausalLM")(config), dtype)


def make(folder: Path, model: Any, dtype: Any) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter + torch.randn_like(parameter) * 0.2)  # biases and norms, too
        model.to(dtype).save_pretrained(folder, max_shard_size="30KB" if "biased" in folder.name else "1MB")
        (folder / "generation_config.json").unlink()
        tokens = np.random.default_rng(0).integers(0, VOCAB, TOKENS)
        read = type(model).from_pretrained(folder, dtype=torch.float32).eval()
        logits = read(torch.tensor(tokens)[None]).logits[0].numpy()
    np.savez_compressed(folder / "expected.npz", tokens=tokens, logits=logits)


if __name__ == "__main__":
    main()
