"""Requests for text generation, and their deltas."""

import builtins
from typing import Any, Literal

from msx_core.errors import InvalidInput
from msx_core.generation.adapters import AdapterFiles
from msx_core.generation.image import Image
from msx_core.generation.owner import Owner
from msx_core.generation.sampling import SamplingParams
from msx_core.generation.wire import Integer, Positive, WireStruct

FinishReason = Literal["stop", "eos", "length"]
"""`stop`: a stop string or token of the request; `eos`: the model's own end; `length`: a limit."""


class ContextLengthExceeded(InvalidInput):
    """The prompt, or the prompt and the tokens to be generated, exceed the model's context.

    Clients of OpenAI's API recognise a message that begins `This model's maximum context length is`.
    """

    code = "context_length_exceeded"


class ParseOptions(WireStruct):
    """How the handler divides a text into reasoning, content and calls."""

    reasoning: bool = True
    """False leaves out what the model thought."""
    parallel: bool = True
    """False leaves out all calls but the first."""


class GenerateRequest(WireStruct):
    """Exactly one of `prompt` and `messages` is given."""

    prompt: str | tuple[Integer, ...] | None = None
    """A text, or token ids."""
    messages: list[dict[str, Any]] | None = None
    """OpenAI's chat messages; the model's chat template makes the prompt of them. A `content` is a text or, where it
    has images, a list of `{"type": "text", "text": …}` and `{"type": "image", "digest": …}`."""
    images: tuple[Image, ...] = ()
    """The images of `messages`, in the order of their parts, or those of `prompt` (`Image.at`); at most
    `Capabilities.max_images`."""
    tools: list[dict[str, Any]] | None = None
    """OpenAI's tools, for the chat template."""
    chat_template_kwargs: dict[str, Any] = {}
    """Further variables for the template; they override the two members that follow."""
    add_generation_prompt: bool | None = None
    """Begin a new message for the answer after the messages. None: unless the last message is continued."""
    continue_final_message: bool = False
    """The text continues the last message."""
    chat_template: str | None = None
    """Replaces the model's own template; only if `Capabilities.request_templates` is true. It comes from a client, and
    is not trusted."""
    adapter: str = ""
    """One of `Capabilities.adapters`, or the name of `adapter_files`; empty for the model alone."""
    adapter_files: AdapterFiles | None = None
    """Files of an adapter that was loaded while the model runs; the server adds them."""
    params: SamplingParams = SamplingParams()
    stream: bool = True
    """False: a single delta at the end of each of the `n` texts is enough."""
    priority: Integer = 0
    """A lower priority is served first; equal ones in the order of arrival. Without one (0) it is that of the request's
    class: -1 of a high one, 1 of a low one."""
    owner: Owner | None = None
    """Whose turn it is, where an engine serves requests in turns; the server adds it. None: the request is alone."""
    truncate: Positive | None = None
    """Keep this many of the prompt's last tokens only."""
    add_special_tokens: bool = True
    """The APIs set it to False for `messages`, since the template writes special tokens."""
    return_prompt_ids: bool = False
    parse: ParseOptions | None = None
    """Asks for `GenerateDelta.message`; only if `Capabilities.parses_calls` or `parses_reasoning` is true."""


class TopToken(WireStruct):
    id: int
    text: str
    logprob: float


class Token(WireStruct):
    """`text` is the decoded token, perhaps with U+FFFD where the token is a part of a character."""

    id: int
    text: str
    logprob: float | None = None
    special: bool = False
    bytes: builtins.bytes = b""
    """The bytes of the token, if log-probabilities were asked for."""
    top: tuple[TopToken, ...] = ()
    rank: int | None = None
    """Rank of a prompt's token: its place among all that could stand there; 1 is the likeliest."""


class Usage(WireStruct):
    """Token counts of one request; `completion` is the sum over all its texts."""

    prompt: int
    completion: int
    cached: int = 0
    """Prompt tokens whose keys and values were in the cache."""


class CallPiece(WireStruct):
    """A call of a tool, or a further piece of its arguments, JSON. Only the first piece has an id and a name."""

    number: int
    arguments: str = ""
    id: str = ""
    name: str = ""


class MessageDelta(WireStruct):
    """The growth of a message: what a handler that parses by itself makes of the growth of a text."""

    reasoning: str = ""
    content: str = ""
    """It has no calls where the handler parses them."""
    calls: tuple[CallPiece, ...] = ()


class GenerateDelta(WireStruct):
    """The growth of one of the `n` texts. The last delta of each text has a `finish_reason`; the very last one has
    `usage`."""

    index: int = 0
    text: str = ""
    """Whole characters, without parts of a stop string; the deltas' texts joined are the text."""
    tokens: tuple[Token, ...] = ()
    """The tokens since the last delta; their texts joined may differ from `text`."""
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    """The stop string or token id that matched."""
    prompt_tokens: tuple[Token, ...] = ()
    """Tokens of the prompt, on the first delta, when `prompt_logprobs` was asked for; the first token has no
    log-probability."""
    prompt_ids: tuple[int, ...] = ()
    """Ids of the prompt's tokens, on the first delta, when `return_prompt_ids` was asked for."""
    message: MessageDelta | None = None
    """The part of the message that this growth adds, when `parse` asked for it."""
    seed: int | None = None
    """Seed that reproduces a sampled text, on its last delta."""
    usage: Usage | None = None
