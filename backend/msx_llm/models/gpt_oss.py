"""gpt-oss: sinks in attention, every other layer with a window, and experts whose gate is clamped, in 4 bits."""

from msgspec import UNSET

from msx_llm.models.config import DecoderConfig
from msx_llm.models.experts import ExpertsConfig, check_chosen
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, rope_of, windows_of

WINDOW, KV_HEADS, HEAD_DIM, EXPERTS, CHOSEN = 128, 8, 64, 128, 4
ROPE = {
    "rope_type": "yarn",
    "rope_theta": 150000.0,
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
KEYS = {"layer_types", "num_experts_per_tok", "num_local_experts", "sliding_window", "swiglu_alpha", "swiglu_limit"}
MEMBERS = ConfigMembers(
    READ | KEYS,
    {**NEUTRAL, "attention_bias": (True,), "mlp_bias": (None, False)},
    IGNORED | {"experts_per_token", "initial_context_length"},
)


def configure(hub: HubConfig) -> DecoderConfig:
    count, chosen = hub.num_local_experts or EXPERTS, hub.num_experts_per_tok or CHOSEN
    check_chosen(count, chosen)
    experts = ExpertsConfig(
        count=count,
        chosen=chosen,
        inner=hub.intermediate_size,
        layers=(True,) * hub.num_hidden_layers,
        normed=True,
        clamp=(hub.swiglu_alpha, hub.swiglu_limit),
        packed=hub.quantization_config is not None,
    )
    window = WINDOW if hub.sliding_window is UNSET else hub.sliding_window
    rope = rope_of(hub) if hub.rope_scaling or hub.rope_parameters else dict(ROPE)
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        rope=rope,
        qkv_bias=True,
        o_bias=True,
        sinks=True,
        windows=windows_of(hub, window, lambda layer: layer % 2 == 0),
        experts=experts,
    )
