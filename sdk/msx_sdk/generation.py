"""What text generation is asked for, and what comes back: the boundary between the APIs and any handler.

The frontend, which has no tokenizer, makes a `GenerateRequest` of an OpenAI, TGI or KServe request, and shapes its
replies from `GenerateDelta`s. A handler that speaks these types gets all of those APIs; `TextGenerationHandler` in
`msx_sdk.text_generation` does the speaking. Parameters mean what they mean in Hugging Face transformers, vLLM and TGI.
"""

from __future__ import annotations

import builtins
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from msx_sdk._wide_integers import packable, unpacked
from msx_sdk.errors import InvalidInput

GENERATE, TOKENIZE, EMBED = "generate", "tokenize", "embed"
"""Operations besides a prediction; what a handler offers is in its `Capabilities`."""

FinishReason = Literal["stop", "eos", "length"]
"""`stop`: a stop string or token of the request; `eos`: the model's own end; `length`: a limit."""

MOST_INTEGER = (1 << 63) - 1
"""Numbers that are counted with have 64 bits; those in messages, tools and template options may be of any size."""
Integer = Annotated[int, Meta(ge=-MOST_INTEGER - 1, le=MOST_INTEGER)]
Natural = Annotated[int, Meta(ge=0, le=MOST_INTEGER)]
Positive = Annotated[int, Meta(ge=1, le=MOST_INTEGER)]
Share = Annotated[float, Meta(ge=0, le=1)]
Words = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=256)], ...], Meta(max_length=1024)]
Template = Annotated[str, Meta(max_length=64 << 10)]


class _Wire(msgspec.Struct, kw_only=True, omit_defaults=True):
    pass


class ContextLengthExceeded(InvalidInput):
    """The prompt, or the prompt and what shall follow it, has more tokens than the model's context.

    A message that begins `This model's maximum context length is` is recognised by clients of OpenAI's API.
    """

    code = "context_length_exceeded"


class Constraint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the text must look like. `value` is a JSON schema, a regular expression, or a Lark grammar; for `choice` a
    JSON list of texts; unused for `json_object`, any JSON object."""

    kind: Literal["json_schema", "json_object", "regex", "choice", "lark"]
    value: str = ""


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the next token is chosen, and when the text ends. The defaults change nothing.

    Order of application: logit bias and penalties, bad words, constraint, temperature, top-k, top-p, min-p, typical.
    """

    temperature: Annotated[float, Meta(ge=0, le=100)] = 1.0
    """0 takes the likeliest token."""
    top_k: Natural = 0
    """0: the whole vocabulary."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    min_p: Share = 0.0
    typical_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    repetition_penalty: Annotated[float, Meta(gt=0)] = 1.0
    """Divides positive logits of tokens in prompt and text, multiplies negative ones (Keskar et al. 2019)."""
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] = 0.0
    """Subtracted once per occurrence in the text so far."""
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] = 0.0
    """Subtracted from what has occurred in the text so far."""
    logit_bias: dict[int, float] = {}
    """Token id to what is added to its logit."""
    seed: Annotated[int, Meta(ge=0)] | None = None
    """Below 2**64. The same seed draws the same numbers, whatever else is in the batch."""
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[Integer, ...] = ()
    bad_words: Words = ()
    """Words that the text does not say: no token completes what a word is made of, at a beginning or after a space."""
    skip_special_tokens: bool = True
    """Special tokens are not shown in the text; the token that ends it never is."""
    keep_stop: bool = False
    """Leave the matched stop string in the text, as TGI does; OpenAI takes it out."""
    ignore_eos: bool = False
    min_tokens: Natural = 0
    max_tokens: Positive | None = None
    """None: as many as the context holds."""
    n: Annotated[int, Meta(ge=1, le=128)] = 1
    best_of: Annotated[int, Meta(ge=1, le=128)] | None = None
    """Make so many, return the `n` with the highest mean log-probability; not together with streaming."""
    logprobs: Annotated[int, Meta(ge=0, le=100)] | None = None
    """None: no log-probabilities. 0: of the chosen tokens. k: also the k likeliest at each place.

    They are of the model's own distribution, before penalties and temperature.
    """
    prompt_logprobs: bool = False
    """Log-probabilities of the prompt's tokens, too."""
    constraint: Constraint | None = None


class SamplingDefaults(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What members of `SamplingParams` are where a request does not say; None leaves them to the API."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None


class GenerateRequest(_Wire):
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


class TopToken(_Wire):
    id: int
    text: str
    logprob: float


class Token(_Wire):
    """`text` is what this token alone decodes to, perhaps with U+FFFD where it is part of a character."""

    id: int
    text: str
    logprob: float | None = None
    special: bool = False
    bytes: builtins.bytes = b""
    """What the token stands for, when log-probabilities were asked for."""
    top: tuple[TopToken, ...] = ()


class Usage(_Wire):
    """Token counts of one request; `completion` is the sum over all that were made."""

    prompt: int
    completion: int
    cached: int = 0
    """Prompt tokens whose keys and values were there already."""


class GenerateDelta(_Wire):
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


class TokenizeRequest(_Wire):
    """As in `GenerateRequest`; the reply is a `TokenizeReply`."""

    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    add_special_tokens: bool = True


class TextSpan(_Wire):
    """A token and the characters of the text that it covers."""

    id: int
    text: str
    start: int
    stop: int


class TokenizeReply(_Wire):
    tokens: list[TextSpan]
    text: str
    """The text that was tokenized: of messages, what the chat template made of them."""


class EmbedRequest(_Wire):
    """One text, or its token ids. The frontend sends a list of texts as a request each."""

    input: str | tuple[Integer, ...]
    dimensions: Positive | None = None
    """Keep only the first so many, and normalise again (Matryoshka embeddings)."""
    truncate: Positive | None = None


class EmbedReply(_Wire):
    """`embedding` is little-endian float32."""

    embedding: bytes
    prompt_tokens: int


class Capabilities(_Wire):
    """What a handler announces when it is loaded."""

    generate: bool = False
    chat: bool = False
    """It has a chat template."""
    template_variables: tuple[str, ...] | None = None
    """What the template reads, beyond messages and tools; None is not known. Clients hear what it does not read."""
    request_templates: bool = False
    """A request may bring a chat template of its own."""
    tokenize: bool = False
    embed: bool = False
    constraints: tuple[str, ...] = ()
    """Kinds of `Constraint` that it can keep to."""
    unheld_keywords: tuple[str, ...] = ()
    """Keywords of JSON schemas that it ignores; a request whose schema is strict is refused for them."""
    sampling: SamplingDefaults = SamplingDefaults()
    """The model's own defaults, for OpenAI's routes and plain predictions."""
    tool_parser: str = "hermes"
    """How it writes calls of tools by its own choice: a name of `msx_sdk.tool_calls.FORMATS`."""
    reasoning_parser: str = ""
    """How it writes what it thinks before the answer, if that is to be told apart: of `msx_sdk.reasoning.FORMATS`."""
    model_id: str = ""
    model_type: str = ""
    max_input_tokens: int | None = None
    max_total_tokens: int | None = None
    max_concurrent: int | None = None
    max_best_of: int = 1
    max_stop_sequences: int = 4
    max_top_tokens: int = 5
    embedding_size: int | None = None


_encoder = msgspec.msgpack.Encoder()


T = TypeVar("T")


def encode(message: msgspec.Struct) -> bytes:
    """MessagePack, as these types travel."""
    try:
        return _encoder.encode(message)
    except OverflowError:
        return _encoder.encode(packable(message))


def decode(data: bytes, kind: type[T]) -> T:
    """What `encode` made. Raises msgspec.DecodeError."""
    return msgspec.msgpack.decode(data, type=kind, ext_hook=unpacked)
