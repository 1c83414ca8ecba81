"""Checks of a request before it reaches vLLM; each error is one sentence with the parameter's name."""

from collections.abc import Sequence

from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ContextLengthExceeded, SamplingParams

GREEDY = 1e-5
"""vLLM takes a lower temperature for 0."""
HOTTEST = 2.0
SEEDS = 1 << 64
LIMIT = "vllm.max_model_len"
PROMPT, INPUT = "prompt", "input"
"""The names of the text that goes on, and of one that is read alone, in requests."""


def is_greedy(params: SamplingParams) -> bool:
    return params.temperature < GREEDY


def check_sampling(params: SamplingParams, *, drafts: bool, adapts: bool) -> None:
    """Raises InvalidInput for what vLLM's engine does not do. `drafts`: it decodes speculatively; `adapts`: it has room
    for adapters, where it takes the scores of a prompt's tokens for those of other requests: beside others that ends
    it, or they are wrong (https://github.com/vllm-project/vllm/issues/16668)."""
    if params.temperature > HOTTEST:
        raise InvalidInput(f"temperature: {params.temperature} is more than {HOTTEST}, the most that vLLM samples with")
    if params.typical_p != 1:
        raise InvalidInput("typical_p: vLLM has no typical sampling; leave it out, or send top_p or min_p")
    if params.seed is not None and params.seed >= SEEDS:
        raise InvalidInput(f"seed: {params.seed} is not below 2**64")
    if adapts and params.prompt_logprobs:
        raise InvalidInput(
            "prompt_logprobs: vLLM scores no prompts of a model that has room for adapters; leave it out (echo with "
            "logprobs and decoder_input_details ask for it, too), or register the model once more without `adapters`"
        )
    if drafts and not params.speculative:
        raise InvalidInput(
            "speculative: this model drafts tokens of all its texts (vllm.speculative_config); leave it out"
        )


def room_of(params: SamplingParams, prompt: int, context: int) -> int | None:
    """`max_tokens` as the context holds it with the prompt; None: all that it holds. Raises ContextLengthExceeded."""
    if prompt >= context:
        raise ContextLengthExceeded(too_long(prompt, context))
    if params.max_tokens is None:
        return None
    if prompt + params.max_tokens > context and not params.fit_context:
        raise ContextLengthExceeded(
            f"max_tokens: This model's maximum context length is {context} tokens ({LIMIT}); {prompt} of the prompt "
            f"and {params.max_tokens} to be generated are {prompt + params.max_tokens}. At most {context - prompt} can "
            "be generated."
        )
    return min(params.max_tokens, context - prompt)


def too_long(tokens: int | None, context: int, name: str = PROMPT) -> str:
    """The error for a prompt or another text that is too long; None: its tokens were not counted. Its sentences are
    OpenAI's, which clients recognise."""
    longest = context - 1 if name == PROMPT else context
    has = f"more than {longest}" if tokens is None else tokens
    room = f", of which a prompt has {longest} at most" if name == PROMPT else ""
    return (
        f"{name}: This model's maximum context length is {context} tokens ({LIMIT}){room}; the {name} has {has}. "
        "Input tokens exceed the configured limit: shorten or truncate it."
    )


def check_ids(ids: Sequence[int], vocab_size: int, name: str = PROMPT) -> None:
    """Raises InvalidInput."""
    if not ids:
        raise InvalidInput(f"{name}: it has no tokens; give at least one")
    if wrong := [token for token in (min(ids), max(ids)) if not 0 <= token < vocab_size]:
        raise InvalidInput(f"{name}: {wrong[0]} is not a token of this model, which has {vocab_size}")
