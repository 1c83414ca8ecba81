"""Ernie 4.5 with experts behind the first layers: a softmax, with a bias for the choice, and shared experts."""

from msx_llm.models import ernie4_5
from msx_llm.models.config import DecoderConfig
from msx_llm.models.experts import ExpertsConfig, check_chosen
from msx_llm.models.hub import HubConfig
from msx_llm.models.members import ConfigMembers

KEYS = {
    "moe_intermediate_size", "moe_k", "moe_layer_end_index", "moe_layer_interval", "moe_layer_start_index",
    "moe_num_experts", "moe_num_shared_experts",
}  # fmt: skip
MEMBERS = ConfigMembers(
    ernie4_5.MEMBERS.read | KEYS, ernie4_5.MEMBERS.neutral, ernie4_5.MEMBERS.ignored | {"moe_norm_min"}
)
KV_HEADS, INNER, NAMES = 4, 1536, (("gate.e_score", "moe_statics.e_score"),)


def configure(hub: HubConfig) -> DecoderConfig:
    check_chosen(hub.moe_num_experts, hub.moe_k)
    inner, end = hub.moe_intermediate_size or INNER, hub.moe_layer_end_index
    own = range(hub.moe_layer_start_index, hub.num_hidden_layers if end == -1 else end + 1)
    experts = ExpertsConfig(
        count=hub.moe_num_experts,
        chosen=hub.moe_k,
        inner=inner,
        layers=tuple(n in own and (n + 1) % hub.moe_layer_interval == 0 for n in range(hub.num_hidden_layers)),
        normed=True,
        shared=inner * hub.moe_num_shared_experts,
        shared_name="shared_experts",
        corrected=True,
        names=NAMES,
    )
    return ernie4_5.of_ernie(hub, kv_heads=KV_HEADS, experts=experts)
