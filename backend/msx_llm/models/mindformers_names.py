"""MindFormers' names of a decoder's tensors, of two kinds of networks: those built on its Llama, DeepSeek among them
(`convert_weight.py`), and those built of its core (`weight_mapping` of the models)."""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from msx_sdk.errors import HandlerLoadError


@dataclass(frozen=True)
class NamedAs:
    """`whole` and `layers` are by its names; a tensor of `embedding` says that a file has these names. `joined` are
    several layers in one tensor, or a layer in several, in an order that is not known here."""

    embedding: str
    whole: Mapping[str, str]
    layers: Mapping[str, str]
    joined: tuple[str, ...]
    remedy: str
    root: str = "model.layers."
    tensors: Mapping[str, str] = field(default_factory=dict)
    """Names of a layer's tensors here, by their names in the file without the layer."""
    others: tuple[str, ...] = ()
    """Names of tensors in layers that predict further tokens: nothing runs them."""


LLAMA = NamedAs(
    embedding="model.tok_embeddings.embedding_weight",
    whole={
        "model.tok_embeddings.embedding_weight": "model.embed_tokens.weight",
        "model.norm_out.weight": "model.norm.weight",
    },
    layers={
        "attention.wq": "self_attn.q_proj",
        "attention.wk": "self_attn.k_proj",
        "attention.wv": "self_attn.v_proj",
        "attention.wo": "self_attn.o_proj",
        "feed_forward.w1": "mlp.gate_proj",
        "feed_forward.w2": "mlp.down_proj",
        "feed_forward.w3": "mlp.up_proj",
        "attention_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "attention.q2l_proj": "self_attn.q_a_proj",
        "attention.lq_norm": "self_attn.q_a_layernorm",
        "attention.lkv_norm": "self_attn.kv_a_layernorm",
        "feed_forward.shared_experts.w1": "mlp.shared_experts.gate_proj",
        "feed_forward.shared_experts.w2": "mlp.shared_experts.down_proj",
        "feed_forward.shared_experts.w3": "mlp.shared_experts.up_proj",
        "feed_forward.routed_experts.router.dense": "mlp.gate",
        "feed_forward.routed_experts.router_dense": "mlp.gate",
    },
    joined=(
        "attention.w_qkv",
        "attention.q_proj",
        "attention.l2q_proj",
        "attention.kv2l",
        "attention.lkv2kv",
        "feed_forward.w_gate_hidden",
        "feed_forward.routed_experts",
    ),
    remedy="save the weights with qkv_concat: False, and DeepSeek's divided (mla_weight_split), or take the "
    "checkpoint of the model's hub",
    tensors={
        "feed_forward.routed_experts.topk_bias": "mlp.gate.e_score_correction_bias",
        "feed_forward.routed_experts.router.router.topk_bias": "mlp.gate.e_score_correction_bias",
    },
    others=("model.mtp_hidden_fusers.", "model.mtp_norms."),
)
CORE = NamedAs(
    embedding="embedding.word_embeddings.weight",
    whole={
        "embedding.word_embeddings.weight": "model.embed_tokens.weight",
        "decoder.final_layernorm.weight": "model.norm.weight",
        "output_layer.weight": "lm_head.weight",
    },
    layers={
        "self_attention.linear_q": "self_attn.q_proj",
        "self_attention.linear_k": "self_attn.k_proj",
        "self_attention.linear_v": "self_attn.v_proj",
        "self_attention.linear_proj": "self_attn.o_proj",
        "self_attention.q_layernorm": "self_attn.q_norm",
        "self_attention.k_layernorm": "self_attn.k_norm",
        "mlp.gating": "mlp.gate_proj",
        "mlp.hidden": "mlp.up_proj",
        "mlp.linear_fc2": "mlp.down_proj",
        "pre_mlp_layernorm": "post_attention_layernorm",
    },
    joined=("self_attention.linear_qkv", "mlp.linear_fc1", "mlp.experts", "mlp.router"),
    remedy="convert the weights to the model's names in its hub with MindFormers",
    root="decoder.layers.",
)
_PREFIX = "model."
"""Before the names of a network's core, where a model around it was saved."""


def hub_names(names: Iterable[str]) -> dict[str, str]:
    """Hugging Face's names of these tensors, each with its own; {} if these are not MindFormers' names. Raises
    HandlerLoadError for joined layers."""
    found = [*names]
    if is_llama(found):
        return {_hub_name(name, LLAMA): name for name in found if not name.startswith(LLAMA.others)}
    if CORE.embedding in found or _PREFIX + CORE.embedding in found:
        return {_hub_name(name.removeprefix(_PREFIX), CORE): name for name in found}
    return {}


def is_llama(names: Container[str]) -> bool:
    return LLAMA.embedding in names


def _hub_name(name: str, kind: NamedAs) -> str:
    layer = re.fullmatch(rf"{re.escape(kind.root)}(\d+)\.(.+)\.(\w+)", name)
    if layer is None:
        return kind.whole.get(name, name)
    number, place, last = layer.groups()
    if (own := kind.tensors.get(f"{place}.{last}")) is not None:
        return f"model.layers.{number}.{own}"
    if place not in kind.layers and any(f"{place}.".startswith(f"{joined}.") for joined in kind.joined):
        raise HandlerLoadError(
            f"{name} holds layers otherwise than one tensor each, in an order that depends on the network or the "
            f"devices; {kind.remedy}"
        )
    return f"model.layers.{number}.{kind.layers.get(place, place)}.{last}"
