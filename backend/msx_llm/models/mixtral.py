"""Mixtral: a Mistral with experts, which have names of their own in the files."""

from typing import Any

from msgspec import UNSET

from msx_llm.models.config import DecoderConfig
from msx_llm.models.experts import ExpertsConfig, check_chosen
from msx_llm.models.hub import READ, HubConfig, wrong_key
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, windows_of
from msx_llm.models.quantised.detect import METHODS

KV_HEADS, EXPERTS, CHOSEN = 8, 8, 2
NAMES = (("mlp.", "block_sparse_moe."), ("gate_proj", "w1"), ("up_proj", "w3"), ("down_proj", "w2"))
KEYS = {"num_experts_per_tok", "num_local_experts"}
UNUSED = {"attention_bias", "mlp_bias", "router_jitter_noise"}
MEMBERS = ConfigMembers(READ | KEYS | {"layer_types", "sliding_window"}, NEUTRAL, IGNORED | UNUSED)


def configure(hub: HubConfig) -> DecoderConfig:
    window = None if hub.sliding_window is UNSET else hub.sliding_window
    experts = named_experts(hub, EXPERTS, CHOSEN, NAMES)
    return neutral(hub, kv_heads=KV_HEADS, windows=windows_of(hub, window), experts=experts)


def named_experts(
    hub: HubConfig, count: int, chosen: int, names: tuple[tuple[str, str], ...], **more: Any
) -> ExpertsConfig:
    """Experts in all layers. `count` and `chosen` are a family's defaults. Raises HandlerLoadError."""
    if (method := (hub.quantization_config or {}).get("quant_method")) in METHODS:
        raise wrong_key("quantization_config", method, "is not supported for this family; take it in bfloat16 or fp8")
    count, chosen = hub.num_local_experts or count, hub.num_experts_per_tok or chosen
    check_chosen(count, chosen)
    layers = (True,) * hub.num_hidden_layers
    return ExpertsConfig(
        count=count, chosen=chosen, inner=hub.intermediate_size, layers=layers, normed=True, names=names, **more
    )
