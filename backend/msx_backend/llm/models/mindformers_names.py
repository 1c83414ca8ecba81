"""MindFormers' names of a decoder's tensors (its `convert_weight.py` of Llama, and of the families built on that)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msx_sdk.errors import HandlerLoadError

EMBEDDING = "model.tok_embeddings.embedding_weight"
WHOLE = {EMBEDDING: "model.embed_tokens.weight", "model.norm_out.weight": "model.norm.weight"}
OF_LAYERS = {
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
JOINED = ("attention.w_qkv", "feed_forward.w_gate_hidden")
"""Several layers in one tensor, whose rows lie as a number of devices wants them."""
_LAYER = re.compile(r"(model\.layers\.\d+\.)(.+)\.(weight|bias)")


def hub_names(names: Iterable[str]) -> dict[str, str]:
    """Hugging Face's names of these tensors, each with its own; {} if these are not MindFormers' names. Raises
    HandlerLoadError for joined layers."""
    found = [*names]
    return {_hub_name(name): name for name in found} if EMBEDDING in found else {}


def _hub_name(name: str) -> str:
    layer = _LAYER.fullmatch(name)
    if layer is None:
        return WHOLE.get(name, name)
    if layer[2] in JOINED:
        raise HandlerLoadError(
            f"{name} holds several layers, in an order that depends on the devices; save the weights with "
            "qkv_concat: False"
        )
    return f"{layer[1]}{OF_LAYERS.get(layer[2], layer[2])}.{layer[3]}"
