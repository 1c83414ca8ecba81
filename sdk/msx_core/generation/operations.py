"""Operations besides predictions, and the capabilities of a handler."""

from msx_core.generation.sampling import SamplingDefaults
from msx_core.generation.wire import WireStruct

GENERATE, TOKENIZE, EMBED, CLASSIFY = "generate", "tokenize", "embed", "classify"
LOAD_ADAPTER, SLEEP = "load_adapter", "sleep"
"""Operations besides a prediction; what a handler offers is in its `Capabilities`."""


class Capabilities(WireStruct):
    """Features that a handler announces when it is loaded."""

    generate: bool = False
    chat: bool = False
    """The model has a chat template."""
    template_variables: tuple[str, ...] | None = None
    """The variables that the template reads, beyond messages and tools; None: unknown. Clients that send others get an
    error."""
    request_templates: bool = False
    """A request may bring a chat template of its own."""
    tokenize: bool = False
    embed: bool = False
    classify: bool = False
    """The model scores texts, and pairs of texts, by its `labels`."""
    rerank: bool = False
    """Its one score says how well the second text of a pair fits the first; asked for by CLASSIFY."""
    labels: tuple[str, ...] = ()
    beam_search: bool = False
    """`SamplingParams.beam_search` is supported."""
    sleep: bool = False
    """Its workers can release their memory, and have it back."""
    constraints: tuple[str, ...] = ()
    """The kinds of `Constraint` that are supported."""
    unheld_keywords: tuple[str, ...] = ()
    """Keywords of JSON schemas that are ignored; a request with a strict schema that has one is refused."""
    sampling: SamplingDefaults = SamplingDefaults()
    """The model's own defaults, for OpenAI's routes and plain predictions."""
    adapters: tuple[str, ...] = ()
    """The names of the adapters that a request may choose."""
    load_adapter: bool = False
    """Others may be loaded while the model runs."""
    tool_parser: str = "hermes"
    """The name of the tool parser: the format in which the model writes calls of tools."""
    reasoning_parser: str = ""
    """The name of the reasoning parser: the format in which the model writes its reasoning, if that is to be
    separated."""
    parses_calls: bool = False
    """The handler parses calls by itself, whatever `tool_parser` is (`GenerateRequest.parse`)."""
    parses_reasoning: bool = False
    """The handler parses reasoning by itself, whatever `reasoning_parser` is."""
    model_id: str = ""
    model_type: str = ""
    max_input_tokens: int | None = None
    max_total_tokens: int | None = None
    max_concurrent: int | None = None
    concurrent_texts: int | None = None
    """Texts that one step has at most; None where `max_concurrent` says it."""
    max_best_of: int = 1
    max_stop_sequences: int = 4
    max_top_tokens: int = 5
    max_images: int = 0
    """The most images of one request; 0: the model reads text alone, and images are refused by name."""
    embedding_size: int | None = None
    prompts: tuple[str, ...] = ()
    """The names of prompts that may stand before a text that is embedded (`EmbedRequest.prompt_name`)."""
