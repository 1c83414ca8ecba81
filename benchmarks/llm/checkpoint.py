"""A Llama with random weights, as a checkpoint in Hugging Face's layout."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from string import ascii_lowercase
from typing import Any

FLOAT = 4
LETTERS = 4
"""Letters of every token: the tokens of a text can be counted by its length."""
DEVIATION = 0.02
"""Standard deviation of the weights."""


def token_text(id: int) -> str:
    letters = ""
    for _ in range(LETTERS):
        id, letter = divmod(id, len(ascii_lowercase))
        letters = ascii_lowercase[letter] + letters
    return letters


def token_id(text: str) -> int:
    id = 0
    for letter in text:
        id = id * len(ascii_lowercase) + ascii_lowercase.index(letter)
    return id


@dataclass(frozen=True)
class Checkpoint:
    """Float32, without any token that ends a text."""

    dim: int = 512
    layers: int = 8
    heads: int = 8
    kv_heads: int = 4
    hidden: int = 1408
    vocabulary: int = 8192
    context: int = 4096

    @property
    def parameters(self) -> int:
        return sum(prod(shape) for shape in self.shapes().values())

    def config(self) -> dict[str, Any]:
        """config.json."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.dim,
            "intermediate_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.dim // self.heads,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.context,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "bos_token_id": None,
            "eos_token_id": None,
        }

    def tokenizer(self) -> dict[str, Any]:
        """tokenizer.json: aaaa, aaab, … It cannot tokenize texts, because prompts are sent as ids."""
        return {
            "version": "1.0",
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "vocab": {token_text(id): id for id in range(self.vocabulary)},
                "merges": [],
            },
        }

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors by name; matrices are [out, in]."""
        kv = self.dim // self.heads * self.kv_heads
        layer: dict[str, tuple[int, ...]] = {
            "input_layernorm.weight": (self.dim,),
            "self_attn.q_proj.weight": (self.dim, self.dim),
            "self_attn.k_proj.weight": (kv, self.dim),
            "self_attn.v_proj.weight": (kv, self.dim),
            "self_attn.o_proj.weight": (self.dim, self.dim),
            "post_attention_layernorm.weight": (self.dim,),
            "mlp.gate_proj.weight": (self.hidden, self.dim),
            "mlp.up_proj.weight": (self.hidden, self.dim),
            "mlp.down_proj.weight": (self.dim, self.hidden),
        }
        layers = {f"model.layers.{n}.{name}": shape for n in range(self.layers) for name, shape in layer.items()}
        ends = dict.fromkeys(("model.embed_tokens.weight", "lm_head.weight"), (self.vocabulary, self.dim))
        return {**layers, **ends, "model.norm.weight": (self.dim,)}

    def write(self, folder: Path) -> None:
        """Writes the files into the folder, which must exist."""
        (folder / "config.json").write_text(json.dumps(self.config(), indent=2))
        (folder / "tokenizer.json").write_text(json.dumps(self.tokenizer()))
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
        with (folder / "model.safetensors").open("wb") as file:
            file.write(self._header())
            for data in self._tensors():
                file.write(data)

    def _header(self) -> bytes:
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        end = 0
        for name, shape in self.shapes().items():
            begin, end = end, end + prod(shape) * FLOAT
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text

    def _tensors(self) -> Iterator[bytes]:
        import numpy as np  # the scripts beside this one do without it

        random = np.random.default_rng(0)
        for shape in self.shapes().values():
            if len(shape) == 1:  # of a norm
                yield np.ones(shape, np.float32).tobytes()
            else:
                yield (random.standard_normal(shape, np.float32) * np.float32(DEVIATION)).tobytes()
