"""A small random Qwen 2 with the files that a hub has: bfloat16 in two shards, an index, the tokenizer's files."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VOCAB, HIDDEN, INNER, LAYERS, HEADS, KV = 270, 32, 64, 2, 4, 2
CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "max_position_embeddings": 4096,
    "max_window_layers": LAYERS,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "sliding_window": 4096,
    "use_sliding_window": False,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "bos_token_id": 256,
    "eos_token_id": 257,
}
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_end|>", "<|im_start|>"]


def write_qwen(folder: Path) -> None:
    folder.mkdir()
    _write_weights(folder)
    write_tokenizer(folder)
    generation = {"bos_token_id": 256, "eos_token_id": [257, 256], "do_sample": True, "temperature": 0.7}
    tokenizer = {
        "tokenizer_class": "Qwen2Tokenizer",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "chat_template": TEMPLATE,
        "model_max_length": 4096,
    }
    for name, content in (
        ("config", CONFIG),
        ("generation_config", generation),
        ("tokenizer_config", tokenizer),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "README.md").write_text("A model card.")


def _write_weights(folder: Path) -> None:
    shards = {"model-00001-of-00002.safetensors": _layer(0), "model-00002-of-00002.safetensors": _layer(1)}
    shards["model-00001-of-00002.safetensors"]["model.embed_tokens.weight"] = (VOCAB, HIDDEN)
    shards["model-00002-of-00002.safetensors"]["model.norm.weight"] = (HIDDEN,)
    for seed, (name, shapes) in enumerate(shards.items()):
        write_bfloat16(folder / name, shapes, seed)
    places = {tensor: name for name, shapes in shards.items() for tensor in shapes}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def _layer(number: int) -> dict[str, tuple[int, ...]]:
    at, kv = f"model.layers.{number}.", HIDDEN // HEADS * KV
    attention = {"q_proj": HIDDEN, "k_proj": kv, "v_proj": kv}
    shapes: dict[str, tuple[int, ...]] = {f"{at}self_attn.{name}.weight": (n, HIDDEN) for name, n in attention.items()}
    shapes |= {f"{at}self_attn.{name}.bias": (n,) for name, n in attention.items()}
    shapes[f"{at}self_attn.o_proj.weight"] = (HIDDEN, HIDDEN)
    shapes |= {f"{at}mlp.{name}.weight": (INNER, HIDDEN) for name in ("gate_proj", "up_proj")}
    shapes[f"{at}mlp.down_proj.weight"] = (HIDDEN, INNER)
    return shapes | {f"{at}{name}.weight": (HIDDEN,) for name in ("input_layernorm", "post_attention_layernorm")}


def write_bfloat16(path: Path, shapes: Mapping[str, tuple[int, ...]], seed: int) -> None:
    """Random numbers: NumPy has no bfloat16, which is the upper half of a float32."""
    import numpy as np

    random = np.random.default_rng(seed)
    header: dict[str, Any] = {}
    data = b""
    for name, shape in shapes.items():
        values = (random.standard_normal(shape) * 0.1).astype(np.float32)
        encoded = (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + len(encoded)]}
        data += encoded
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: id for id, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
