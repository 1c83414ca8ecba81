"""Models of pictures and texts, of which the text part is served alone: its keys are `text_config` of `config.json`,
and its tensors stand below a name of their own."""

from typing import Any, NamedTuple

from msx_llm.models.members import FILE
from msx_sdk.errors import HandlerLoadError


class TextPart(NamedTuple):
    """`model_type` of the part, unless it is one of `others`, and what its keys mean where they are missing (Hugging
    Face transformers)."""

    model_type: str
    defaults: dict[str, Any] = {}
    others: tuple[str, ...] = ()
    fixed: dict[str, Any] = {}
    """Keys that transformers does not read there, and what it does."""


GEMMA4 = {
    "vocab_size": 262_144,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "max_position_embeddings": 131_072,
}
TEXT_PARTS = {
    "gemma3": TextPart(
        "gemma3_text",
        {
            "vocab_size": 262_208,
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "num_hidden_layers": 26,
            "num_attention_heads": 8,
            "max_position_embeddings": 131_072,
        },
    ),
    "gemma4": TextPart("gemma4_text", GEMMA4),
    "gemma4_unified": TextPart("gemma4_unified_text", GEMMA4 | {"max_position_embeddings": 262_144}),
    "mistral3": TextPart("mistral", others=("ministral3",)),
    "qwen2_5_vl": TextPart("qwen2"),
    "qwen3_5": TextPart("qwen3_5_text"),
    "qwen3_5_moe": TextPart("qwen3_5_moe_text"),
    "qwen3_vl": TextPart("qwen3"),
    "qwen3_vl_moe": TextPart("qwen3_moe", fixed={"norm_topk_prob": True}),
}
SHARED, TIED = ("dtype", "torch_dtype", "quantization_config"), "tie_word_embeddings"
"""Keys that stand beside `text_config` and hold for it, too; the last one also where it has another value there."""
PREFIXES = ("language_model.model.", "model.language_model.")
"""Prefixes of the part's tensors, in older and in newer files."""
PARTS = (
    "vision_tower",
    "multi_modal_projector",
    "visual",
    "embed_vision",
    "audio_tower",
    "embed_audio",
    "vision_embedder",
)
OTHERS = tuple(f"{root}{part}." for root in ("", "model.") for part in PARTS)
"""How names of the other parts' tensors begin."""
PICTURES = (
    "image_token_id", "video_token_id", "vision_config", "vision_end_token_id", "vision_start_token_id",
    "vision_token_id",
)  # fmt: skip
"""Keys of the other parts in older files, whose text part's keys stand beside them."""
SECTIONS = ("mrope_interleaved", "mrope_section")
"""Members of a rope that say which angles are of a picture's rows and columns; of texts, all are the same."""


def text_part(raw: dict[str, Any]) -> dict[str, Any]:
    """The keys of the part; of any other model its own. Raises HandlerLoadError."""
    part = TEXT_PARTS.get(str(raw.get("model_type")))
    if part is None:
        return raw
    own = raw.get("text_config", {name: value for name, value in raw.items() if name not in PICTURES})
    if not isinstance(own, dict):
        raise HandlerLoadError(f"{FILE}, text_config: expected an object with the keys of the text part")
    shared = {name: raw[name] for name in SHARED if name in raw}
    tied = {name: raw[name] for name in (TIED,) if name in raw}
    kind = own["model_type"] if own.get("model_type") in part.others else part.model_type
    return {**part.defaults, **shared, **own, **_ropes(own), **tied, **part.fixed, "model_type": kind}


def _ropes(own: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {
            member: "default" if value == "mrope" else value for member, value in rope.items() if member not in SECTIONS
        }
        for name in ("rope_parameters", "rope_scaling")
        if isinstance(rope := own.get(name), dict)
    }
