"""Small models in GGUF files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msx_llm.text.vocabulary import byte_alphabet
from tests.gguf_files import Stored, write

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
MERGES = [("y", "e"), ("ye", "s"), ("Ġ", "a"), ("ð", "Ł"), ("Ã", "©"), ("Ġ", "Ġ")]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
NORMAL, CONTROL, OF_USERS, BYTE = 1, 3, 4, 6
F32, F16 = 0, 1
NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""Names of a layer's tensors in the hub, and in the file."""
WHOLE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def byte_level(pre: str = "smollm") -> dict[str, Any]:
    """Metadata of a tokenizer of GPT-2's kind: tokens 0 to 2 are special, `<think>` is one of a user."""
    joined = [first + second for first, second in MERGES]
    tokens = [*SPECIAL, *sorted(byte_alphabet()), *joined, "<think>"]
    kinds = [CONTROL] * 3 + [NORMAL] * (len(tokens) - 4) + [OF_USERS]
    own: dict[str, Any] = {"model": "gpt2", "pre": pre, "tokens": tokens, "token_type": kinds}
    own |= {"merges": [" ".join(pair) for pair in MERGES], "bos_token_id": 1, "eos_token_id": 2, "padding_token_id": 2}
    return {f"tokenizer.ggml.{key}": value for key, value in own.items()} | {"tokenizer.chat_template": TEMPLATE}


def network(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of a network with the members of this config.json."""
    own = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "attention.key_length": config["head_dim"],
        "attention.value_length": config["head_dim"],
        "rope.freq_base": float(config["rope_theta"]),
    }
    return {"general.architecture": kind} | {f"{kind}.{key}": value for key, value in own.items()}


SMALL: dict[str, Any] = {
    "num_hidden_layers": 1,
    "max_position_embeddings": 128,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
}


def small(
    path: Path,
    more: Mapping[str, Any] | None = None,
    kind: str = "llama",
    tensors: Mapping[str, Stored] | None = None,
) -> Path:
    """A model whose weights are zeros. `more` metadata comes before its own; None takes a key away."""
    metadata = {**network(kind, SMALL), **byte_level(), **(more or {})}
    rows = len(metadata["tokenizer.ggml.tokens"])
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (rows, 32), "output_norm.weight": (32,)}
    own = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32), "ffn_gate": (64, 32)}
    norms = {"attn_norm": (32,), "ffn_norm": (32,)}
    for name, shape in {**own, "ffn_up": (64, 32), "ffn_down": (32, 64), **norms}.items():
        shapes[f"blk.0.{name}.weight"] = shape
    found = {name: zeros(shape) for name, shape in shapes.items()}
    return write(
        path, {key: value for key, value in metadata.items() if value is not None}, {**found, **(tensors or {})}
    )


def zeros(shape: tuple[int, ...]) -> Stored:
    count = 1
    for size in shape:
        count *= size
    return Stored(shape, F16, bytes(2 * count))


def stored_name(name: str) -> str:
    """The name in the file of a tensor of the hub's name."""
    if name in WHOLE:
        return WHOLE[name]
    _, _, layer, rest = name.split(".", 3)
    module, _, kind = rest.rpartition(".")
    return f"blk.{layer}.{NAMES[module]}.{kind}"


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found
