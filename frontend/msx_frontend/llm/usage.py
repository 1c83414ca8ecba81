"""Token counts as OpenAI's clients read them."""

from __future__ import annotations

from typing import Any

from msx_sdk.generation import FinishReason, Usage

FINISH: dict[FinishReason, str] = {"stop": "stop", "eos": "stop", "length": "length"}


def openai_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
