"""Schemas of the replies of OpenAI's API, for /openapi.json: what clients read. Replies are written without them.

Members that are not in every reply have the default UNSET. Shapes: https://platform.openai.com/docs/api-reference, with
the members that vLLM adds (`token_ids`, `prompt_token_ids`, `prompt_logprobs`, `reasoning_content`).
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

Finish = Literal["stop", "length", "tool_calls"]


class CachedTokens(Struct):
    cached_tokens: int


class TextUsage(Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens | UnsetType = UNSET


class LikelyToken(Struct):
    token: str
    bytes: list[int] | None
    logprob: float


class ChatToken(LikelyToken):
    top_logprobs: list[LikelyToken]


class ChatLogprobs(Struct):
    content: list[ChatToken]
    refusal: str | None


class RankedToken(Struct):
    logprob: float
    rank: int | None
    decoded_token: str


PromptLogprobs = list[dict[str, RankedToken] | None]
"""Log-probabilities of each token but the first, by token id: the token itself, and the likeliest ones."""


class Function(Struct):
    name: str
    arguments: str
    """JSON."""


class WholeCall(Struct):
    id: str
    type: Literal["function"]
    function: Function


class ChatMessage(Struct):
    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[WholeCall] | UnsetType = UNSET


class ChatChoice(Struct):
    index: int
    message: ChatMessage
    finish_reason: Finish
    logprobs: ChatLogprobs | None
    token_ids: list[int] | UnsetType = UNSET


class ChatCompletion(Struct):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoice]
    usage: TextUsage
    prompt_token_ids: list[int] | UnsetType = UNSET
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET


class FunctionDelta(Struct):
    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET


class CallDelta(Struct):
    """The first of a call has its id and name; those that follow have more of its arguments."""

    index: int
    function: FunctionDelta
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET


class ChatDelta(Struct):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[CallDelta] | UnsetType = UNSET


class ChatChunkChoice(Struct):
    index: int
    delta: ChatDelta
    finish_reason: Finish | None
    logprobs: ChatLogprobs | None
    token_ids: list[int] | UnsetType = UNSET


class ChatChunk(Struct):
    """One event of a stream; the last event is `[DONE]`."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChunkChoice]
    usage: TextUsage | UnsetType | None = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class CompletionLogprobs(Struct):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float | None] | None]
    text_offset: list[int]


class CompletionChoice(Struct):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: Finish | None
    """None in a stream, but for the last event of a choice."""
    token_ids: list[int] | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET
    prompt_logprobs: PromptLogprobs | UnsetType = UNSET


class Completion(Struct):
    """A reply, or one event of a stream, whose last event is `[DONE]`."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: TextUsage | UnsetType | None = UNSET


class Embedding(Struct):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str
    """A text is base64 of little-endian float32."""


class EmbeddingUsage(Struct):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(Struct):
    object: Literal["list"]
    model: str
    data: list[Embedding]
    usage: EmbeddingUsage


class ListedModel(Struct):
    """A language model has OpenAI's members; any other has those of KServe v1. Anthropic's clients get theirs."""

    id: str | UnsetType = UNSET
    object: Literal["model"] | UnsetType = UNSET
    created: int | UnsetType = UNSET
    owned_by: str | UnsetType = UNSET
    max_model_len: int | UnsetType = UNSET
    root: str | UnsetType = UNSET
    """The bare name of an adapter."""
    parent: str | UnsetType = UNSET
    """The model that an adapter is for."""
    name: str | UnsetType = UNSET
    ready: bool | UnsetType = UNSET
    type: Literal["model"] | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    created_at: str | UnsetType = UNSET
    max_input_tokens: int | UnsetType = UNSET


class NamesOfModel(Struct):
    """Names of one model, each as a model."""

    object: Literal["list"]
    data: list[ListedModel]


class ListedModels(Struct):
    """Anthropic's clients get `has_more`, `first_id` and `last_id`."""

    data: list[ListedModel]
    object: Literal["list"] | UnsetType = UNSET
    models: list[str] | UnsetType = UNSET
    """The names of all models, as KServe v1 has them."""
    has_more: bool | UnsetType = UNSET
    first_id: str | UnsetType | None = UNSET
    last_id: str | UnsetType | None = UNSET
