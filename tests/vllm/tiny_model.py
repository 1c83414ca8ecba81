"""A small Llama with random weights and the tokenizer of examples/llama; vLLM's attention on CPUs takes its heads."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

Array = np.ndarray[Any, Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "llama"
TEXTS = ("tokenizer.json", "tokenizer_config.json")
HIDDEN, HEADS, LAYERS, INNER, CONTEXT = 128, 2, 2, 256, 256


def make_tiny_model(folder: Path, labels: tuple[str, ...] = (), context: int = CONTEXT) -> Path:
    """Write the model's files to `folder`, which must not exist; heads have 64 numbers. With labels it scores texts.
    `context`: the most tokens of a prompt and its text."""
    folder.mkdir(parents=True)
    for name in TEXTS:
        shutil.copy(EXAMPLE / name, folder)
    shape: dict[str, Any] = {
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "head_dim": HIDDEN // HEADS,
        "max_position_embeddings": context,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }
    if labels:
        shape["architectures"] = ["LlamaForSequenceClassification"]
        shape["id2label"] = {str(number): label for number, label in enumerate(labels)}
    config = json.loads((EXAMPLE / "config.json").read_text()) | shape
    (folder / "config.json").write_text(json.dumps(config))
    save_file(_weights(config["vocab_size"], len(labels)), folder / "model.safetensors")
    return folder


def _weights(vocab: int, labels: int) -> dict[str, Array]:
    random = np.random.default_rng(7)

    def matrix(*shape: int) -> Array:
        return random.normal(0, shape[-1] ** -0.5, shape).astype(np.float32)

    head = {"score.weight": matrix(labels, HIDDEN)} if labels else {"lm_head.weight": 4 * matrix(vocab, HIDDEN)}
    weights = {"model.embed_tokens.weight": matrix(vocab, HIDDEN), **head}
    weights["model.norm.weight"] = np.ones(HIDDEN, np.float32)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        weights |= {f"{at}self_attn.{name}_proj.weight": matrix(HIDDEN, HIDDEN) for name in "qkvo"}
        weights |= {f"{at}mlp.{name}_proj.weight": matrix(INNER, HIDDEN) for name in ("gate", "up")}
        weights[f"{at}mlp.down_proj.weight"] = matrix(HIDDEN, INNER)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{at}{norm}.weight"] = np.ones(HIDDEN, np.float32)
    return weights


def make_adapter(folder: Path, width: int = HIDDEN, rank: int = 8) -> Path:
    """Write an adapter with large weights, as PEFT saves it. It fits the model with the default `width` alone."""
    random = np.random.default_rng(5)
    folder.mkdir(parents=True)
    kinds = {"lora_A": (rank, width), "lora_B": (HIDDEN, rank)}
    weights = {
        f"base_model.model.model.layers.{layer}.self_attn.{name}_proj.{kind}.weight": random.normal(0, 1, shape).astype(
            np.float32
        )
        for layer in range(LAYERS)
        for name in "qv"
        for kind, shape in kinds.items()
    }
    save_file(weights, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder
