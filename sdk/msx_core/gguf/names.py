"""The hub's names of tensors, of decoders that are built like Llama's."""

import re

WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYERS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
ANGLES = "rope_freqs.weight"
"""Divisors of the angles, which stand in the configuration."""
_OF_LAYER = re.compile(r"blk\.(\d{1,5})\.(\w+)\.(weight|bias)")


def hub_name(name: str) -> str:
    """A name that is not known stays as it is: whoever reads the tensors refuses it."""
    found = _OF_LAYER.fullmatch(name)
    if found is None or found[2] not in LAYERS:
        return WHOLE.get(name, name)
    return f"model.layers.{found[1]}.{LAYERS[found[2]]}.{found[3]}"


def linear(name: str) -> str | None:
    """The layer of a weight, by the hub's name of that, if it is a linear one of a decoder's layer; else None."""
    layer, _, kind = name.rpartition(".")
    return layer if kind == "weight" and layer.startswith("model.layers.") and layer.endswith("_proj") else None
