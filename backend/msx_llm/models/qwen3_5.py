"""The text parts of Qwen 3.5: the layers of Qwen 3 Next, with other tensors; in all of them an MLP, or experts."""

from msgspec.structs import replace

from msx_llm.models.config import DecoderConfig
from msx_llm.models.delta import DELTA_KEYS
from msx_llm.models.experts import EXPERT_KEYS, spread_experts
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, ConfigMembers
from msx_llm.models.qwen3_next import FIXED, KEYS, with_nets

FUSED = ("linear_attn.in_proj_qkv",)
KV_HEADS = 4
SIZES = {
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}
NO_MLP = {"intermediate_size": 512}
"""Files of models whose layers all have experts do not say it."""
OF_EXPERTS = EXPERT_KEYS & SIZES.keys()
OWN = IGNORED | {"mamba_ssm_dtype", "mlp_bias", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"}
MEMBERS = ConfigMembers(READ | DELTA_KEYS | KEYS, FIXED, OWN)
EXPERTS_MEMBERS = ConfigMembers(READ | DELTA_KEYS | KEYS | OF_EXPERTS, FIXED, OWN)


def configure(hub: HubConfig) -> DecoderConfig:
    return with_nets(hub, by_heads=False, kv_heads=KV_HEADS, fused=FUSED)


def configure_experts(hub: HubConfig) -> DecoderConfig:
    experts = spread_experts(hub, hub.num_hidden_layers, SIZES)
    plain = replace(experts, normed=True, layers=(True,) * hub.num_hidden_layers)
    return with_nets(hub, by_heads=False, fused=FUSED, experts=plain)
