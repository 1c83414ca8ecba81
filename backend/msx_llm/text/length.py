"""Texts that are too long for a model."""

from msx_llm.text.tokenizer import Tokenizer
from msx_sdk.generation import ContextLengthExceeded


def too_long(parameter: str, tokens: int | None, limit: int) -> str:
    """The error for a text that is too long; `tokens` is None if they were not counted to the end. The sentences are
    OpenAI's: LiteLLM and LangChain recognise them."""
    has = f"more than {limit}" if tokens is None else tokens
    return (
        f"{parameter}: This model's maximum context length is {limit} tokens (maxInputTokens); "
        f"the {parameter} has {has}. Input tokens exceed the configured limit: shorten or truncate it."
    )


def check_size(parameter: str, text: str, tokenizer: Tokenizer, limit: int) -> None:
    """Raises ContextLengthExceeded for a text that need not be tokenized to see that it is too long."""
    if tokenizer.least(text) > limit:
        raise ContextLengthExceeded(too_long(parameter, None, limit))
