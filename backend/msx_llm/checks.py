"""Checks of a request against the model and its limits; each error is one sentence with the parameter's name."""

from collections.abc import Sequence

from msx_llm.limits import EngineLimits
from msx_llm.text import Tokenizer
from msx_llm.text.length import too_long
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ContextLengthExceeded, GenerateRequest, SamplingParams


def prompt_of(request: GenerateRequest, tokenizer: Tokenizer, limits: EngineLimits, vocab_size: int) -> list[int]:
    """The token ids of the prompt. Raises InvalidInput."""
    if request.prompt is None:
        raise InvalidInput("prompt: expected a text, or token ids")
    if isinstance(request.prompt, str):
        tokens = tokenizer.encode(request.prompt, request.add_special_tokens)
    else:
        tokens = list(request.prompt)
    tokens = tokens[-request.truncate :] if request.truncate else tokens
    _check_length(tokens, limits.max_input)
    if not isinstance(request.prompt, str):
        _check_ids(tokens, vocab_size)
    return tokens


def limit_of(params: SamplingParams, prompt: int, limits: EngineLimits) -> int:
    """The most tokens of prompt and text together. Raises InvalidInput."""
    if params.max_tokens is None:
        return limits.context
    if prompt + params.max_tokens > limits.context and not params.fit_context:
        raise ContextLengthExceeded(
            f"max_tokens: This model's maximum context length is {limits.context} tokens (maxTotalTokens); "
            f"{prompt} of the prompt and {params.max_tokens} to be generated are {prompt + params.max_tokens}. "
            f"At most {limits.context - prompt} can be generated."
        )
    return min(prompt + params.max_tokens, limits.context)


def _check_ids(tokens: Sequence[int], vocab_size: int) -> None:
    if min(tokens) >= 0 and max(tokens) < vocab_size:
        return
    wrong = next(token for token in tokens if not 0 <= token < vocab_size)
    raise InvalidInput(f"prompt: {wrong} is not a token of this model, which has {vocab_size}")


def _check_length(tokens: Sequence[int], limit: int) -> None:
    if not tokens:
        raise InvalidInput("prompt: it has no tokens; give at least one")
    if len(tokens) > limit:
        raise ContextLengthExceeded(too_long("prompt", len(tokens), limit))
