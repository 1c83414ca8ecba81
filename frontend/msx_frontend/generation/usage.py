"""Token counts as OpenAI's clients read them."""

from typing import Any

from msx_core.generation import FinishReason, Usage
from msx_frontend.generation.generation import TextDelta

FINISH: dict[FinishReason, str] = {"stop": "stop", "eos": "stop", "length": "length"}


def openai_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


class RunningUsage:
    """Counts of a stream so far, for each of its events: vLLM's `continuous_usage_stats`."""

    def __init__(self) -> None:
        self._prompts: dict[int, int] = {}
        self._completion = 0

    def add(self, text_delta: TextDelta) -> None:
        """The first delta of each prompt has the prompt's ids."""
        self._prompts.setdefault(text_delta.prompt, len(text_delta.delta.prompt_ids))
        self._completion += len(text_delta.delta.tokens)

    @property
    def told(self) -> dict[str, int]:
        prompt = sum(self._prompts.values())
        both = prompt + self._completion
        return {"prompt_tokens": prompt, "completion_tokens": self._completion, "total_tokens": both}
