"""Small random decoders that score pairs of texts: with a head for labels, or with the head of a language model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel

from tests.llm.classification.checkpoints import CLASSIFIES, LABELS, RERANKS
from tests.llm.embedding.checkpoints import (
    _DECODER_LAYER,
    _QWEN3_LAYER,
    HEAD,
    HEADS,
    HIDDEN,
    KEY_VALUE_HEADS,
    LAYERS,
    QWEN3,
    Arrays,
    Random,
)

WORDS = """
    yes no 0 1 2 3 4 the cat sat on a mat dog dogs cats with statement judge query document : . user system assistant
"""
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = [*MARKS, "[UNK]", *WORDS.split()]
YES, NO = VOCABULARY.index("yes"), VOCABULARY.index("no")
TEMPLATE = """\
{%- set given = messages | selectattr("role", "eq", "system") | map(attribute="content") | first -%}
<|im_start|>system
judge : yes . no .<|im_end|>
<|im_start|>user
{{ given | default("judge", true) }} : \
query : {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }} \
document : {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}<|im_end|>
<|im_start|>assistant
"""
"""As rerankers have it that answer with yes or no."""
PLAIN_TEMPLATE = "{% for message in messages if message.role == 'user' %}{{ message.content }}{% endfor %}"
_SHARED = QWEN3 | {"vocab_size": len(VOCABULARY), "pad_token_id": 0, "tie_word_embeddings": False}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForSequenceClassification"], **_SHARED},
    "qwen2": {"model_type": "qwen2", "architectures": ["Qwen2ForSequenceClassification"], **_SHARED},
    "qwen3": {"model_type": "qwen3", "architectures": ["Qwen3ForSequenceClassification"], **_SHARED},
    "gemma3_text": {"model_type": "gemma3_text", "architectures": ["Gemma3TextForSequenceClassification"], **_SHARED}
    | {"hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 24, "sliding_window": 8}
    | {"layer_types": ["sliding_attention", "full_attention"], "rope_local_base_freq": 1000.0},
}
CONFIGS["qwen2_two_ways"] = CONFIGS["qwen2"] | {"is_causal": False}
ANSWERING = {
    "qwen3_tied": CONFIGS["qwen3"] | {"architectures": ["Qwen3ForCausalLM"], "tie_word_embeddings": True},
    "llama_head": CONFIGS["llama"] | {"architectures": ["LlamaForCausalLM"]},
}
_QUERIES, _KEYS = HEADS * HEAD, KEY_VALUE_HEADS * HEAD
_BIASES = {"self_attn.q_proj": _QUERIES, "self_attn.k_proj": _KEYS, "self_attn.v_proj": _KEYS}
_GEMMA_LAYER = _QWEN3_LAYER | {"pre_feedforward_layernorm": (HIDDEN,), "post_feedforward_layernorm": (HIDDEN,)}
_MORE = {"qwen3": _QWEN3_LAYER, "gemma3_text": _GEMMA_LAYER}


def tensors_of(config: dict[str, Any], labels: int) -> Arrays:
    """labels: of the head; 0 for the head of a language model."""
    random, kind = Random(), config["model_type"]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens": (len(VOCABULARY), HIDDEN), "model.norm": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes |= {f"model.layers.{layer}.{name}": it for name, it in (_DECODER_LAYER | _MORE.get(kind, {})).items()}
    if labels:
        shapes["score"] = (labels, HIDDEN)
    elif not config["tie_word_embeddings"]:
        shapes["lm_head"] = (len(VOCABULARY), HIDDEN)
    tensors = {f"{name}.weight": random.weight(shape) for name, shape in shapes.items()}
    if kind == "qwen2":
        for layer in range(LAYERS):
            tensors |= {f"model.layers.{layer}.{name}.bias": random.bias(size) for name, size in _BIASES.items()}
    if kind == "gemma3_text":
        tensors = {name: array - 1 if array.ndim == 1 else array for name, array in tensors.items()}
    return tensors


def write_decoder(folder: Path, kind: str, *, reranks: bool = True, **config: Any) -> Path:
    """One of `CONFIGS`, with one label or three; returns the folder."""
    members = CONFIGS[kind] | (RERANKS if reranks else CLASSIFIES) | config
    return _written(folder, members, 1 if reranks else len(LABELS))


def write_answering(folder: Path, kind: str, template: str | None = TEMPLATE, *, module: bool = False) -> Path:
    """One of `ANSWERING`. `module`: the files name its two tokens, in the order no, yes."""
    _written(folder, ANSWERING[kind], 0)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    if module:
        name = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"
        listed = {"": "sentence_transformers.base.modules.transformer.Transformer", "1_LogitScore": name}
        entries = [{"path": path, "type": it} for path, it in listed.items()]
        modules = [{"idx": n, "name": str(n), **entry} for n, entry in enumerate(entries)]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_LogitScore").mkdir()
        tokens = {"true_token_id": NO, "false_token_id": YES, "module_input_name": "causal_logits"}
        (folder / "1_LogitScore" / "config.json").write_text(json.dumps(tokens))
        about = {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity"}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(about))
        forward = {"method": "forward", "method_output_name": "logits"}
        modalities = {"text": forward, "message": {**forward, "format": "flat"}}
        task = {"transformer_task": "text-generation", "modality_config": modalities}
        (folder / "sentence_bert_config.json").write_text(json.dumps(task | {"module_output_name": "causal_logits"}))
    return folder


def _written(folder: Path, config: dict[str, Any], labels: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors_of(config, labels), folder / "model.safetensors", {"format": "pt"})
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))
    return folder


def tokenizer() -> Tokenizer:
    """Words, and marks of a conversation; nothing around a text."""
    made = Tokenizer(WordLevel({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(MARKS)
    return made


TOKENIZER = {
    "tokenizer_class": "TokenizersBackend",
    "pad_token": "<|endoftext|>",
    "eos_token": "<|im_end|>",
    "padding_side": "left",
    "model_max_length": 72,
}
