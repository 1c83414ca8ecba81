"""Operations besides a prediction, and what a handler announces of them."""

from __future__ import annotations

from msx_sdk.generation._sampling import SamplingDefaults
from msx_sdk.generation._wire import WireStruct

GENERATE, TOKENIZE, EMBED = "generate", "tokenize", "embed"
"""Operations besides a prediction; what a handler offers is in its `Capabilities`."""


class Capabilities(WireStruct):
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
    """How it writes calls of tools by its own choice, by the name of a tool parser."""
    reasoning_parser: str = ""
    """How it writes what it thinks before the answer, if that is to be told apart: the name of a reasoning parser."""
    model_id: str = ""
    model_type: str = ""
    max_input_tokens: int | None = None
    max_total_tokens: int | None = None
    max_concurrent: int | None = None
    max_best_of: int = 1
    max_stop_sequences: int = 4
    max_top_tokens: int = 5
    embedding_size: int | None = None
