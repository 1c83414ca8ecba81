"""The configuration of a model of llm-serving."""

from .config import ServingConfig, check_valid_config

__all__ = ["ServingConfig", "check_valid_config"]
