"""DeepSeek V2 and V3: latent attention, and experts behind the first layers, in groups of which a token takes some."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from msx_llm.models.config import DecoderConfig
from msx_llm.models.experts import ExpertsConfig, check_groups
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.latent import LATENT_KEYS, latent_of
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral

KEYS = frozenset(
    {
        "first_k_dense_replace", "moe_intermediate_size", "moe_layer_freq", "n_group", "n_routed_experts",
        "n_shared_experts", "norm_topk_prob", "num_experts_per_tok", "num_experts", "num_local_experts",
        "routed_scaling_factor", "topk_group", "topk_method",
    }
)  # fmt: skip
V2_SIZES = {
    "num_local_experts": 64,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1407,
    "n_shared_experts": 2,
    "first_k_dense_replace": 0,
    "routed_scaling_factor": 1.0,
}
V3_SIZES = {
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "routed_scaling_factor": 2.5,
}
OTHERS = {"attention_bias": (None, False), "mlp_bias": (None, False)}
UNUSED = frozenset({"aux_loss_alpha", "ep_size", "num_mtp_layers", "qk_head_dim", "seq_aux"})
V2_MEMBERS = ConfigMembers(
    (READ | LATENT_KEYS | KEYS) - {"norm_topk_prob", "rope_interleave"},
    {**NEUTRAL, **OTHERS, "norm_topk_prob": (None, False), "scoring_func": (None, "softmax")},
    IGNORED | UNUSED,
)
V3_MEMBERS = ConfigMembers(
    (READ | LATENT_KEYS | KEYS) - {"topk_method"},
    {**NEUTRAL, **OTHERS, "scoring_func": (None, "sigmoid"), "topk_method": (None, "noaux_tc")},
    IGNORED | UNUSED,
)


def configure_v2(hub: HubConfig) -> DecoderConfig:
    grouped = hub.topk_method == "group_limited_greedy"
    groups = (hub.n_group or 1, hub.topk_group or 1) if grouped else (1, 1)
    return _configure(hub, experts_of(hub, V2_SIZES, groups=groups[0], chosen_groups=groups[1]))


def configure_v3(hub: HubConfig) -> DecoderConfig:
    normed = hub.norm_topk_prob is not False
    groups = {"groups": hub.n_group or 8, "chosen_groups": hub.topk_group or 4}
    return _configure(hub, experts_of(hub, V3_SIZES, sigmoid=True, normed=normed, **groups))


def _configure(hub: HubConfig, experts: ExpertsConfig) -> DecoderConfig:
    latent = latent_of(hub)
    made = neutral(hub, head_dim=latent.turning, latent=latent, experts=experts)
    scale = latent.query**-0.5 * _sharpness(made.rope) ** 2
    return msgspec.structs.replace(made, kv_heads=1, head_dim=latent.turning, attention_scale=scale)


def experts_of(hub: HubConfig, defaults: Mapping[str, Any], **choice: Any) -> ExpertsConfig:
    """Experts behind the first layers, with shared ones. Raises HandlerLoadError."""
    given = {name: getattr(hub, name) for name in defaults}
    sizes = {name: defaults[name] if value is None else value for name, value in given.items()}
    count, inner = hub.n_routed_experts or hub.num_experts or sizes["num_local_experts"], sizes["moe_intermediate_size"]
    first, chosen = sizes["first_k_dense_replace"], sizes["num_experts_per_tok"]
    check_groups(count, chosen, (choice["groups"], choice["chosen_groups"]))
    return ExpertsConfig(
        count=count,
        chosen=chosen,
        inner=inner,
        layers=tuple(n >= first and n % hub.moe_layer_freq == 0 for n in range(hub.num_hidden_layers)),
        shared=inner * sizes["n_shared_experts"],
        shared_name="shared_experts",
        factor=sizes["routed_scaling_factor"],
        **choice,
    )


def _sharpness(rope: dict[str, Any]) -> float:
    """Factor by whose square scores are larger, with stretched angles."""
    weight, factor = rope.get("mscale_all_dim") or 0, rope.get("factor") or 1
    if rope["rope_type"] == "default" or not weight or factor <= 1:
        return 1.0
    return 0.1 * float(weight) * math.log(factor) + 1
