"""Parsers that only vLLM has."""

from __future__ import annotations

import pytest

from msx_core.config import ModelConfig
from msx_llm.text.parsers import check_parsers
from msx_sdk.errors import HandlerLoadError


def test_parsers_of_vllm_are_refused() -> None:
    check_parsers(ModelConfig(tool_parser="hermes", reasoning_parser="qwen3"))
    with pytest.raises(HandlerLoadError, match="reasoningParser: vllm:x is a parser of vLLM's, which --handler vllm"):
        check_parsers(ModelConfig(reasoning_parser="vllm:x"))
