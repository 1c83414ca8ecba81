"""Families by the `model_type` of `config.json`. A new one is a function from its keys to a `ModelConfig`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msx_backend.llm.models import llama, mistral, qwen2, qwen3
from msx_backend.llm.models.config import FILE, HubConfig, ModelConfig, read_hub_config
from msx_sdk.errors import HandlerLoadError

FAMILIES: Mapping[str, Callable[[HubConfig], ModelConfig]] = {
    "llama": llama.configure,
    "mistral": mistral.configure,
    "qwen2": qwen2.configure,
    "qwen3": qwen3.configure,
}


def read_config(folder: Path) -> ModelConfig:
    """The model of a folder in Hugging Face's layout. Raises HandlerLoadError, which names the key and its value."""
    hub = read_hub_config(folder)
    if hub.model_type not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise HandlerLoadError(f"{FILE}, model_type: {hub.model_type!r} is unknown; known are {known}")
    return FAMILIES[hub.model_type](hub)
