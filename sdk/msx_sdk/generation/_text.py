"""A request for texts, and the deltas by which they grow."""

from __future__ import annotations

import builtins
from typing import Any, Literal

from msx_sdk.errors import InvalidInput
from msx_sdk.generation._sampling import SamplingParams
from msx_sdk.generation._wire import Integer, Positive, Template, WireStruct

FinishReason = Literal["stop", "eos", "length"]
"""`stop`: a stop string or token of the request; `eos`: the model's own end; `length`: a limit."""


class ContextLengthExceeded(InvalidInput):
    """The prompt, or the prompt and what shall follow it, has more tokens than the model's context.

    A message that begins `This model's maximum context length is` is recognised by clients of OpenAI's API.
    """

    code = "context_length_exceeded"


class GenerateRequest(WireStruct):
    """Exactly one of `prompt` and `messages` is given."""

    prompt: str | tuple[Integer, ...] | None = None
    """A text, or token ids."""
    messages: list[dict[str, Any]] | None = None
    """OpenAI's chat messages, with `content` a text; the model's chat template makes the prompt of them."""
    tools: list[dict[str, Any]] | None = None
    """OpenAI's tools, for the chat template."""
    chat_template_kwargs: dict[str, Any] = {}
    """Further values for the template; they come before the two members that follow."""
    add_generation_prompt: bool | None = None
    """Begin the answer's message behind the messages. None: unless the last one is continued."""
    continue_final_message: bool = False
    """The text goes on with the last message."""
    chat_template: Template | None = None
    """In place of the model's own; only where `Capabilities.request_templates` says so. A stranger wrote it."""
    params: SamplingParams = SamplingParams()
    stream: bool = True
    """False: a single delta for each of the `n` at its end is enough."""
    priority: Integer = 0
    """Lower comes first; equal ones in the order of arrival."""
    truncate: Positive | None = None
    """Keep only so many of the prompt's last tokens."""
    add_special_tokens: bool = True
    """The APIs ask for none of `messages`, whose template writes them."""
    return_prompt_ids: bool = False


class TopToken(WireStruct):
    id: int
    text: str
    logprob: float


class Token(WireStruct):
    """`text` is what this token alone decodes to, perhaps with U+FFFD where it is part of a character."""

    id: int
    text: str
    logprob: float | None = None
    special: bool = False
    bytes: builtins.bytes = b""
    """What the token stands for, when log-probabilities were asked for."""
    top: tuple[TopToken, ...] = ()


class Usage(WireStruct):
    """Token counts of one request; `completion` is the sum over all that were made."""

    prompt: int
    completion: int
    cached: int = 0
    """Prompt tokens whose keys and values were there already."""


class GenerateDelta(WireStruct):
    """What one of the `n` texts grew by. The last delta of each has a `finish_reason`; the very last has `usage`."""

    index: int = 0
    text: str = ""
    """Whole characters, never part of a stop string; joined they are the text."""
    tokens: tuple[Token, ...] = ()
    """Those made since the last delta: their texts need not add up to `text`."""
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    """The stop string or token id that matched."""
    prompt_tokens: tuple[Token, ...] = ()
    """On the first delta, when `prompt_logprobs` was asked for; the first token has no log-probability."""
    prompt_ids: tuple[int, ...] = ()
    """On the first delta, when `return_prompt_ids` was asked for."""
    seed: int | None = None
    """On the last delta of a sampled text: what makes it again."""
    usage: Usage | None = None
