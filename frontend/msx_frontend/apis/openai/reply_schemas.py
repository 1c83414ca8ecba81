"""Schemas of the replies of OpenAI's API, for /openapi.json: what clients read. Replies are written without them.

Members that are not in every reply have the default UNSET. Shapes: https://platform.openai.com/docs/api-reference, with
the members that vLLM adds (`token_ids`, `prompt_token_ids`, `prompt_logprobs`, `reasoning_content`).
"""

from typing import Any, Literal

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


class InputDetails(Struct):
    cached_tokens: int
    cache_write_tokens: int


class OutputDetails(Struct):
    reasoning_tokens: int


class ResponseUsage(Struct):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class Incomplete(Struct):
    reason: Literal["max_output_tokens"]


class TextOptions(Struct):
    format: dict[str, Any]


class Response(Struct):
    id: str
    object: Literal["response"]
    created_at: float
    background: bool
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    error: dict[str, Any] | None
    incomplete_details: Incomplete | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[dict[str, Any]]
    """Items of the types message, reasoning and function_call."""
    parallel_tool_calls: bool
    previous_response_id: str | None
    store: bool
    temperature: float | None
    text: TextOptions
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]]
    top_p: float | None
    truncation: Literal["disabled"]
    usage: ResponseUsage | None


class ResponseEvent(Struct):
    """One event of a streamed response; which further members it has is told by its type."""

    type: str
    sequence_number: int
    response: Response | UnsetType = UNSET
    output_index: int | UnsetType = UNSET
    content_index: int | UnsetType = UNSET
    item_id: str | UnsetType = UNSET
    item: dict[str, Any] | UnsetType = UNSET
    part: dict[str, Any] | UnsetType = UNSET
    delta: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    logprobs: list[ChatToken] | UnsetType = UNSET


class DeletedResponse(Struct):
    id: str
    object: Literal["response"]
    deleted: bool


class InputItems(Struct):
    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class FileObject(Struct):
    """`bytes` is its size; times in seconds since the epoch."""

    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: Literal["batch", "batch_output"]
    status: Literal["processed"]
    status_details: None


class FileOfKey(FileObject):
    """A file as operators see it."""

    key: str


class FileList(Struct):
    object: Literal["list"]
    data: list[FileObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedFile(Struct):
    id: str
    object: Literal["file"]
    deleted: bool


class BatchFault(Struct):
    code: str
    message: str
    line: int | None
    param: str | None


class BatchFaults(Struct):
    object: Literal["list"]
    data: list[BatchFault]


class LineCounts(Struct):
    total: int
    completed: int
    failed: int


class BatchObject(Struct):
    """Times in seconds since the epoch."""

    id: str
    object: Literal["batch"]
    endpoint: str
    errors: BatchFaults | None
    input_file_id: str
    completion_window: str
    status: Literal[
        "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
    ]
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    expires_at: int
    request_counts: LineCounts
    metadata: dict[str, str] | None


class BatchOfKey(BatchObject):
    """A batch as operators see it."""

    key: str


class BatchList(Struct):
    object: Literal["list"]
    data: list[BatchObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class BatchesOfKeys(Struct):
    object: Literal["list"]
    data: list[BatchOfKey]
    first_id: str | None
    last_id: str | None
    has_more: bool


class FilesOfKeys(Struct):
    object: Literal["list"]
    data: list[FileOfKey]
    first_id: str | None
    last_id: str | None
    has_more: bool
