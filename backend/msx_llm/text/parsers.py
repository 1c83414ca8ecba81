"""Parsers that this engine does not have."""

from msx_core.config import ModelConfig
from msx_core.config.sections import VLLMS
from msx_sdk.errors import HandlerLoadError


def check_parsers(config: ModelConfig) -> None:
    """Raises HandlerLoadError for a parser of vLLM's."""
    for key, name in (("toolParser", config.tool_parser), ("reasoningParser", config.reasoning_parser)):
        if name and name.startswith(VLLMS):
            raise HandlerLoadError(f"{key}: {name} is a parser of vLLM's, which --handler vllm alone has: give another")
