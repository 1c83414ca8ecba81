"""The keys of `config.json` by which layers of one model differ in their shapes (Gemma 4)."""

from typing import Any

import msgspec

from msx_llm.models.key_types import Size
from msx_llm.models.members import FILE
from msx_sdk.errors import HandlerLoadError


class LayerOverrides(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys that one layer has otherwise, as transformers 5 writes them."""

    head_dim: Size | None = None
    num_key_value_heads: Size | None = None


def layer_overrides(given: dict[str, dict[str, Any]]) -> dict[int, LayerOverrides]:
    """Raises HandlerLoadError."""
    try:
        return {int(layer): msgspec.convert(keys, LayerOverrides) for layer, keys in given.items()}
    except ValueError as error:  # that of msgspec is one
        raise HandlerLoadError(f"{FILE}, per_layer_config: {error}") from None


LAYER_KEYS = frozenset(
    {
        "attention_k_eq_v", "enable_moe_block", "final_logit_softcapping", "global_head_dim",
        "hidden_size_per_layer_input", "num_global_key_value_heads", "num_kv_shared_layers", "per_layer_config",
        "top_k_experts", "use_double_wide_mlp", "vocab_size_per_layer_input",
    }
)  # fmt: skip
