"""Llama 2 and 3, and the many models that say they are one."""

from msx_backend.llm.models.config import HubConfig, ModelConfig, neutral


def configure(hub: HubConfig) -> ModelConfig:
    return neutral(hub, qkv_bias=hub.attention_bias, o_bias=hub.attention_bias, mlp_bias=hub.mlp_bias)
