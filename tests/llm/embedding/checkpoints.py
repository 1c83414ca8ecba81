"""Small random checkpoints in Hugging Face's layout, the same wherever they are made: weights come from NumPy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

Arrays = dict[str, "np.ndarray[Any, Any]"]

HIDDEN, INNER, LAYERS, HEADS, PLACES = 32, 48, 2, 4, 72
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "##s", "##ing", "with", "statement"]
VOCABULARY = list(dict.fromkeys([*SPECIAL, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]))

BERT: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "max_position_embeddings": PLACES,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
ENCODERS: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", "architectures": ["BertModel"], **BERT},
    "roberta": {"model_type": "roberta", "architectures": ["RobertaModel"], **BERT}
    | {"pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu_new"},
    "distilbert": {
        "model_type": "distilbert",
        "architectures": ["DistilBertModel"],
        "vocab_size": len(VOCABULARY),
        "dim": HIDDEN,
        "hidden_dim": INNER,
        "n_layers": LAYERS,
        "n_heads": HEADS,
        "max_position_embeddings": PLACES,
        "activation": "relu",
        "sinusoidal_pos_embds": False,
        "pad_token_id": 0,
    },
}
KEY_VALUE_HEADS, HEAD = 2, 16
QWEN3: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_VALUE_HEADS,
    "head_dim": HEAD,
    "intermediate_size": INNER,
    "max_position_embeddings": PLACES,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "attention_bias": False,
}
DECODERS: dict[str, dict[str, Any]] = {
    "qwen3": {"model_type": "qwen3", "architectures": ["Qwen3Model"], **QWEN3, "tie_word_embeddings": True},
    "mistral": {"model_type": "mistral", "architectures": ["MistralForCausalLM"], **QWEN3, "sliding_window": 12},
}
DECODERS |= {
    "qwen3_two_ways": DECODERS["qwen3"] | {"is_causal": False},
    "mistral_two_ways": DECODERS["mistral"] | {"is_causal": False},
}
CONFIGS = ENCODERS | DECODERS
_DECODER_LAYER = {
    "self_attn.q_proj": (HEADS * HEAD, HIDDEN),
    "self_attn.k_proj": (KEY_VALUE_HEADS * HEAD, HIDDEN),
    "self_attn.v_proj": (KEY_VALUE_HEADS * HEAD, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * HEAD),
    "mlp.gate_proj": (INNER, HIDDEN),
    "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER),
    "input_layernorm": (HIDDEN,),
    "post_attention_layernorm": (HIDDEN,),
}
_QWEN3_LAYER = {"self_attn.q_norm": (HEAD,), "self_attn.k_norm": (HEAD,)}
_BERT_LAYER = {
    "attention.self.query": (HIDDEN, HIDDEN),
    "attention.self.key": (HIDDEN, HIDDEN),
    "attention.self.value": (HIDDEN, HIDDEN),
    "attention.output.dense": (HIDDEN, HIDDEN),
    "attention.output.LayerNorm": (HIDDEN,),
    "intermediate.dense": (INNER, HIDDEN),
    "output.dense": (HIDDEN, INNER),
    "output.LayerNorm": (HIDDEN,),
}
_DISTILBERT_NAMES = {
    "attention.self.query": "attention.q_lin",
    "attention.self.key": "attention.k_lin",
    "attention.self.value": "attention.v_lin",
    "attention.output.dense": "attention.out_lin",
    "attention.output.LayerNorm": "sa_layer_norm",
    "intermediate.dense": "ffn.lin1",
    "output.dense": "ffn.lin2",
    "output.LayerNorm": "output_layer_norm",
}


class Random:
    """Values large enough for every detail to show in the result."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)

    def weight(self, shape: tuple[int, ...]) -> Any:
        norm = len(shape) == 1
        return (self._random.standard_normal(shape) * (0.3 if norm else 0.2) + norm).astype(np.float32)

    def bias(self, size: int) -> Any:
        return (self._random.standard_normal(size) * 0.2).astype(np.float32)


def tensors_of(kind: str) -> Arrays:
    """Tensors of `CONFIGS[kind]`, under Hugging Face's names."""
    return encoder_tensors(kind) if kind in ENCODERS else decoder_tensors(kind)


def encoder_tensors(kind: str = "bert") -> Arrays:
    random, config, distil = Random(), CONFIGS[kind], kind == "distilbert"
    tables = {"word": config["vocab_size"], "position": PLACES, "token_type": config.get("type_vocab_size")}
    tensors = {
        f"embeddings.{name}_embeddings.weight": random.weight((rows, HIDDEN)) for name, rows in tables.items() if rows
    }
    shapes: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (HIDDEN,)}
    for layer in range(LAYERS):
        for name, shape in _BERT_LAYER.items():
            place = f"transformer.layer.{layer}" if distil else f"encoder.layer.{layer}"
            shapes[f"{place}.{_DISTILBERT_NAMES[name] if distil else name}"] = shape
    for name, shape in shapes.items():
        tensors |= {f"{name}.weight": random.weight(shape), f"{name}.bias": random.bias(shape[0])}
    return tensors


def decoder_tensors(kind: str) -> Arrays:
    """Qwen's as the network alone saves it, Mistral's with a head."""
    random, qwen = Random(), kind.startswith("qwen3")
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens": (len(VOCABULARY), HIDDEN), "norm": (HIDDEN,)}
    for layer in range(LAYERS):
        for name, shape in (_DECODER_LAYER | (_QWEN3_LAYER if qwen else {})).items():
            shapes[f"layers.{layer}.{name}"] = shape
    prefix = "" if qwen else "model."
    tensors = {f"{prefix}{name}.weight": random.weight(shape) for name, shape in shapes.items()}
    return tensors if qwen else tensors | {"lm_head.weight": random.weight((len(VOCABULARY), HIDDEN))}


def write_checkpoint(folder: Path, kind: str = "bert", tensors: Arrays | None = None, **config: Any) -> Path:
    """config.json, model.safetensors and tokenizer.json; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIGS[kind] | config))
    save_file(tensors_of(kind) if tensors is None else tensors, folder / "model.safetensors", {"format": "pt"})
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def write_modules(folder: Path, *, normalize: bool = True, max_length: int | None = None, **modes: bool) -> None:
    """Write the files of sentence-transformers: `write_modules(folder, pooling_mode_cls_token=True)`."""
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    places = ["", "1_Pooling", "2_Normalize"]
    (folder / "modules.json").write_text(
        json.dumps(
            [
                {"idx": n, "name": str(n), "path": place, "type": f"sentence_transformers.models.{kind}"}
                for n, (kind, place) in enumerate(zip(kinds, places, strict=False))
            ]
        )
    )
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": HIDDEN, **modes}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if max_length is not None:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": max_length}))


def tokenizer(lowercase: bool = True) -> Tokenizer:
    """[CLS], words and letters, [SEP]. It truncates and pads, as many files of sentence-transformers do."""
    made = Tokenizer(WordPiece({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    frame = [(token, VOCABULARY.index(token)) for token in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", frame)
    made.add_special_tokens(SPECIAL)
    made.enable_truncation(16)
    made.enable_padding(length=16)
    return made
