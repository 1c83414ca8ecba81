"""A small Qwen2.5-VL with random weights, and the tokenizer of examples/llama with the tokens that stand for images."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tests.vllm.tiny_model import EXAMPLE, Array

HIDDEN, HEADS, LAYERS, INNER, CONTEXT = 128, 2, 2, 256, 256
PATCH, MERGED, FRAMES = 14, 2, 2
SIDE = PATCH * MERGED
"""Pixels of a side of the square that one token stands for."""
MOST_TOKENS = 16
"""Tokens of one image: a larger one is made smaller."""
MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
TEMPLATE = (
    "{{ '<s>' }}{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% if not loop.last %}{{ '\\n\\n' }}{% endif %}"
    "{% endfor %}"
)


def make_tiny_vision_model(folder: Path) -> Path:
    """Write the model's files to `folder`, which must not exist; heads have 64 numbers."""
    folder.mkdir(parents=True)
    tokenizer = json.loads((EXAMPLE / "tokenizer.json").read_text())
    first = len(tokenizer["model"]["vocab"])
    tokenizer["added_tokens"] += [_special(first + number, mark) for number, mark in enumerate(MARKS)]
    config = _config(first)
    files = {
        "config.json": config,
        "preprocessor_config.json": _preprocessor(),
        "video_preprocessor_config.json": {**_preprocessor(), "video_processor_type": "Qwen2VLVideoProcessor"},
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": {
            **json.loads((EXAMPLE / "tokenizer_config.json").read_text()),
            "chat_template": TEMPLATE,
            "processor_class": "Qwen2_5_VLProcessor",
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    save_file(_weights(config["text_config"]["vocab_size"]), folder / "model.safetensors")
    return folder


def _special(id: int, mark: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": mark, **flags, "special": True}


def _config(first: int) -> dict[str, Any]:
    start, end, image, video = range(first, first + len(MARKS))
    text = {
        "model_type": "qwen2_5_vl_text",
        "vocab_size": first + len(MARKS),
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12]},
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    vision = {
        "model_type": "qwen2_5_vl",
        "depth": LAYERS,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_heads": HEADS,
        "out_hidden_size": HIDDEN,
        "patch_size": PATCH,
        "spatial_merge_size": MERGED,
        "temporal_patch_size": FRAMES,
        "window_size": 4 * SIDE,
        "fullatt_block_indexes": [1],
    }
    return {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        "text_config": text,
        "vision_config": vision,
        "vision_start_token_id": start,
        "vision_end_token_id": end,
        "image_token_id": image,
        "video_token_id": video,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }


def _preprocessor() -> dict[str, Any]:
    return {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2_5_VLProcessor",
        "size": {"shortest_edge": SIDE**2, "longest_edge": MOST_TOKENS * SIDE**2},
        "patch_size": PATCH,
        "merge_size": MERGED,
        "temporal_patch_size": FRAMES,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }


def _weights(vocab: int) -> dict[str, Array]:
    random = np.random.default_rng(7)

    def matrix(*shape: int) -> Array:
        return random.normal(0, np.prod(shape[1:]) ** -0.5, shape).astype(np.float32)

    def layer(*shape: int) -> dict[str, Array]:
        return {"weight": matrix(*shape), "bias": np.zeros(shape[0], np.float32)}

    def norm() -> dict[str, Array]:
        return {"weight": np.ones(HIDDEN, np.float32)}

    wide = HIDDEN * MERGED**2
    parts = {
        "lm_head": {"weight": 4 * matrix(vocab, HIDDEN)},
        "model.language_model.embed_tokens": {"weight": matrix(vocab, HIDDEN)},
        "model.language_model.norm": norm(),
        "model.visual.patch_embed.proj": {"weight": matrix(HIDDEN, 3, FRAMES, PATCH, PATCH)},
        "model.visual.merger.ln_q": norm(),
        "model.visual.merger.mlp.0": layer(wide, wide),
        "model.visual.merger.mlp.2": layer(HIDDEN, wide),
    }
    for number in range(LAYERS):
        at = f"model.language_model.layers.{number}."
        parts |= {f"{at}self_attn.{name}_proj": layer(HIDDEN, HIDDEN) for name in "qkv"}
        parts |= {f"{at}mlp.{name}_proj": {"weight": matrix(INNER, HIDDEN)} for name in ("gate", "up")}
        parts |= {f"{at}self_attn.o_proj": {"weight": matrix(HIDDEN, HIDDEN)}}
        parts |= {f"{at}mlp.down_proj": {"weight": matrix(HIDDEN, INNER)}}
        parts |= {f"{at}{name}": norm() for name in ("input_layernorm", "post_attention_layernorm")}
        at = f"model.visual.blocks.{number}."
        parts |= {f"{at}attn.qkv": layer(3 * HIDDEN, HIDDEN), f"{at}attn.proj": layer(HIDDEN, HIDDEN)}
        parts |= {f"{at}mlp.{name}_proj": layer(INNER, HIDDEN) for name in ("gate", "up")}
        parts |= {f"{at}mlp.down_proj": layer(HIDDEN, INNER), f"{at}norm1": norm(), f"{at}norm2": norm()}
    return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}
