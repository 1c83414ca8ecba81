"""Models of pictures and texts, of which the text part is served alone: its keys are `text_config` of `config.json`,
and its tensors stand below a name of their own."""

from typing import Any, NamedTuple

from msx_llm.models.members import FILE
from msx_sdk.errors import HandlerLoadError


class TextPart(NamedTuple):
    """`model_type` of the part, and what its keys mean where they are missing (Hugging Face transformers)."""

    model_type: str
    defaults: dict[str, Any]


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
    )
}
SHARED = ("dtype", "torch_dtype", "quantization_config", "tie_word_embeddings")
"""Keys that stand beside `text_config` and hold for it, too."""
PREFIXES = ("language_model.model.", "model.language_model.")
"""Prefixes of the part's tensors, in older and in newer files."""
OTHERS = tuple(f"{root}{part}." for root in ("", "model.") for part in ("vision_tower", "multi_modal_projector"))
"""How names of the other parts' tensors begin."""


def text_part(raw: dict[str, Any]) -> dict[str, Any]:
    """The keys of the part; of any other model its own. Raises HandlerLoadError."""
    part, own = TEXT_PARTS.get(str(raw.get("model_type"))), raw.get("text_config", {})
    if part is None:
        return raw
    if not isinstance(own, dict):
        raise HandlerLoadError(f"{FILE}, text_config: expected an object with the keys of the text part")
    shared = {name: raw[name] for name in SHARED if name in raw}
    return {**part.defaults, **shared, **own, "model_type": part.model_type}
