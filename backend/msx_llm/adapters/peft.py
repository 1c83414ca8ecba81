"""A folder that PEFT wrote: `adapter_config.json` and `adapter_model.safetensors`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from msx_core.json_text import json_text
from msx_core.values import show
from msx_sdk.errors import HandlerLoadError

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MOST_CONFIG = 1 << 20
"""Bytes."""
MOST_RANK, MOST_ALPHA = 1 << 16, 10**9
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "alpha_pattern": (None, {}),
    "alora_invocation_tokens": (None,),
    "bias": (None, "none"),
    "exclude_modules": (None, []),
    "fan_in_fan_out": (None, False),
    "layer_replication": (None,),
    "layers_pattern": (None, "", []),
    "layers_to_transform": (None, []),
    "lora_bias": (None, False),
    "modules_to_save": (None, []),
    "rank_pattern": (None, {}),
    "target_parameters": (None, []),
    "trainable_token_indices": (None, [], {}),
    "use_dora": (None, False),
    "use_qalora": (None, False),
}
"""Members that change what an adapter computes, and the values with which they do not."""
RESIDUAL = ("pissa", "olora", "corda")
"""Ways of `init_lora_weights` that change the model's own weights, too."""


@dataclass(frozen=True)
class PeftConfig:
    rank: int
    scale: float


def read_peft(name: str, folder: Path) -> PeftConfig:
    """Raises HandlerLoadError for a file that cannot be read, and what is not served."""
    try:
        members = msgspec.json.decode(json_text(_content(name, folder / CONFIG)), type=dict[str, Any])
    except OSError as error:
        raise HandlerLoadError(f"adapter {name}: {CONFIG} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise HandlerLoadError(f"adapter {name}: {CONFIG} cannot be read: {error}") from None
    _refuse(name, members)
    rank, alpha = members.get("r"), members.get("lora_alpha")
    if type(rank) is not int or not 1 <= rank <= MOST_RANK:
        raise HandlerLoadError(f"adapter {name}: r: {show(rank)} of {CONFIG} is not an integer from 1 to {MOST_RANK}")
    if not isinstance(alpha, int | float) or abs(alpha) > MOST_ALPHA:
        raise HandlerLoadError(
            f"adapter {name}: lora_alpha: {show(alpha)} of {CONFIG} is not a number from -{MOST_ALPHA} to {MOST_ALPHA}"
        )
    return PeftConfig(rank, alpha / (rank**0.5 if members.get("use_rslora") else rank))


def _content(name: str, path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MOST_CONFIG + 1)
    if len(content) > MOST_CONFIG:
        raise HandlerLoadError(f"adapter {name}: {CONFIG} has more than {MOST_CONFIG} bytes")
    return content


def _refuse(name: str, members: dict[str, Any]) -> None:
    if (kind := members.get("peft_type")) != "LORA":
        raise HandlerLoadError(f"adapter {name}: peft_type {show(kind)} is not served; it must be LORA")
    for member, neutral in NEUTRAL.items():
        if (value := members.get(member)) not in neutral:
            raise HandlerLoadError(f"adapter {name}: {member}: {show(value)} is not served; merge it into the model")
    if (start := str(members.get("init_lora_weights"))).startswith(RESIDUAL):
        raise HandlerLoadError(
            f"adapter {name}: init_lora_weights: {start[:80]} changes the model, too; save it converted "
            "(path_initial_model_for_weight_conversion)"
        )
