"""Families by the `model_type` of `config.json`. To add one, write a function from its keys to a `DecoderConfig`, and
list the keys that it reads, ignores or refuses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from msx_core.unknown_families import unknown_family
from msx_llm.models import (
    deepseek,
    ernie4_5,
    ernie4_5_moe,
    gemma3,
    gemma4,
    glm4,
    glm4_moe,
    gpt_oss,
    granite,
    hunyuan,
    llama,
    minimax_m2,
    ministral3,
    mistral,
    mixtral,
    olmo2,
    phi3,
    qwen2,
    qwen2_moe,
    qwen3,
    qwen3_5,
    qwen3_moe,
    qwen3_next,
    seed_oss,
    smollm3,
)
from msx_llm.models.arrangement import holders
from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import HubConfig, hub_config, read_raw
from msx_llm.models.members import FILE, ConfigMembers
from msx_llm.models.quantised.detect import quantisation_of
from msx_llm.models.quantised.scheme import Quantisation
from msx_llm.models.rope import check_rope
from msx_llm.models.text_part import TEXT_PARTS, text_part
from msx_sdk.errors import HandlerLoadError


@dataclass(frozen=True)
class DecoderFamily:
    configure: Callable[[HubConfig], DecoderConfig]
    members: ConfigMembers
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Keys that all other families must have."""


MOST_EXPERTS = 1 << 18
"""Experts of all layers together; the largest models have 30,000."""
FAMILIES: Mapping[str, DecoderFamily] = {
    "llama": DecoderFamily(llama.configure, llama.MEMBERS),
    "mistral": DecoderFamily(mistral.configure, mistral.MEMBERS),
    "qwen2": DecoderFamily(qwen2.configure, qwen2.MEMBERS),
    "qwen2_moe": DecoderFamily(qwen2_moe.configure, qwen2_moe.MEMBERS),
    "qwen3": DecoderFamily(qwen3.configure, qwen3.MEMBERS),
    "qwen3_moe": DecoderFamily(qwen3_moe.configure, qwen3_moe.MEMBERS),
    "qwen3_next": DecoderFamily(qwen3_next.configure, qwen3_next.MEMBERS),
    "qwen3_5_text": DecoderFamily(qwen3_5.configure, qwen3_5.MEMBERS),
    "qwen3_5_moe_text": DecoderFamily(qwen3_5.configure_experts, qwen3_5.EXPERTS_MEMBERS, qwen3_5.NO_MLP),
    "deepseek_v2": DecoderFamily(deepseek.configure_v2, deepseek.V2_MEMBERS),
    "deepseek_v3": DecoderFamily(deepseek.configure_v3, deepseek.V3_MEMBERS),
    "gpt_oss": DecoderFamily(gpt_oss.configure, gpt_oss.MEMBERS),
    "phi3": DecoderFamily(phi3.configure, phi3.MEMBERS),
    "glm4": DecoderFamily(glm4.configure, glm4.MEMBERS),
    "gemma3_text": DecoderFamily(gemma3.configure, gemma3.MEMBERS),
    "gemma4_text": DecoderFamily(gemma4.configure, gemma4.MEMBERS),
    "gemma4_unified_text": DecoderFamily(gemma4.configure_unified, gemma4.MEMBERS),
    "kimi_k2": DecoderFamily(deepseek.configure_v3, deepseek.V3_MEMBERS),
    "olmo2": DecoderFamily(olmo2.configure, olmo2.MEMBERS),
    "smollm3": DecoderFamily(smollm3.configure, smollm3.MEMBERS),
    "granite": DecoderFamily(granite.configure, granite.MEMBERS),
    "seed_oss": DecoderFamily(seed_oss.configure, seed_oss.MEMBERS),
    "ernie4_5": DecoderFamily(ernie4_5.configure, ernie4_5.MEMBERS),
    "ernie4_5_moe": DecoderFamily(ernie4_5_moe.configure, ernie4_5_moe.MEMBERS),
    "glm4_moe": DecoderFamily(glm4_moe.configure, glm4_moe.MEMBERS),
    "mixtral": DecoderFamily(mixtral.configure, mixtral.MEMBERS),
    "minimax_m2": DecoderFamily(minimax_m2.configure, minimax_m2.MEMBERS),
    "hunyuan_v1_dense": DecoderFamily(hunyuan.configure, hunyuan.MEMBERS),
    "ministral3": DecoderFamily(ministral3.configure, ministral3.MEMBERS),
}


def read_config(folder: Path) -> DecoderConfig:
    """Reads the configuration of a folder in Hugging Face's layout. Raises HandlerLoadError, which names the key and
    its value."""
    raw = text_part(read_raw(folder))
    check_family(raw.get("model_type"))
    family = FAMILIES.get(str(raw.get("model_type")))
    hub = hub_config(raw if family is None else {**family.defaults, **raw})
    family = FAMILIES[hub.model_type]
    config = family.configure(hub)
    _check_experts(config)
    family.members.check(raw, **_of_heads(config.head_dim))
    for own in (config.of_rope(place) for place, rope in enumerate(config.ropes) if rope):
        check_rope(own)
    return _quantised(config, quantisation_of(folder, hub.quantization_config))


def _check_experts(config: DecoderConfig) -> None:
    """Each expert of each layer has tensors, and so names, of its own."""
    count = 0 if config.experts is None else config.experts.count
    if count * config.layers > MOST_EXPERTS:
        raise HandlerLoadError(
            f"{FILE}: {config.layers:,} layers of {count:,} experts are more than the {MOST_EXPERTS:,} that are served"
        )


def check_family(kind: object) -> None:
    """Raises HandlerLoadError for a model type without a family; its other keys have other names. No type at all is
    left to the check of the keys."""
    if isinstance(kind, str) and kind not in FAMILIES:
        raise HandlerLoadError(unknown_family(kind, (*FAMILIES, *TEXT_PARTS)))


def _quantised(config: DecoderConfig, quantisation: Quantisation | None) -> DecoderConfig:
    if quantisation is None:
        return config
    if config.delta is not None:
        raise HandlerLoadError(
            f"config.json, quantization_config: weights of {config.model_type} that stay integers are not served: "
            "parts of its linear layers lie between each other; take the checkpoint in bfloat16 or in 8-bit floats"
        )
    own = msgspec.structs.replace(quantisation, fused=holders(config.fused))
    return msgspec.structs.replace(config, quantised=own, rotary_pairs=config.rotary_pairs or own.rotary_pairs)


def _of_heads(size: int) -> dict[str, tuple[Any, ...]]:
    """Members whose values follow from the size of a head."""
    return {
        "attention_multiplier": (None, size**-0.5),
        "query_pre_attn_scalar": (None, size),
        "rotary_dim": (None, size),
    }
