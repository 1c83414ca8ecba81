"""A request for the scores of a text, or of a pair of texts, by a model with labels."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from msx_core.generation.wire import Integer, Positive, WireStruct

Scale = Literal["model", "files", "probability", "logit"]


class ClassifyRequest(WireStruct):
    """One text or its token ids, or a text with a second one. The server sends a list of texts as one request for
    each, and a query with its documents as one request for each document, which is the second text.
    """

    input: str | tuple[Integer, ...]
    pair: str | None = None
    scale: Scale = "model"
    """`model` and `files`: the activation that the model's own files name, without one as sentence-transformers has it,
    and as vLLM, which is `probability`; `probability`: from 0 to 1; `logit`: as the network has it."""
    truncate: Positive | None = None
    """The most tokens; of a pair the longer text is cut first."""
    truncate_left: bool = False
    """Cut the beginning of a text, not its end."""


class ClassifyReply(WireStruct):
    """`scores` are in the order of `Capabilities.labels`; a model that reranks has one."""

    scores: Annotated[tuple[float, ...], Meta(min_length=1)]
    prompt_tokens: int


def by_label(labels: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    """Labels that the handler does not name are numbered."""
    named = [*labels[: len(scores)], *(f"LABEL_{number}" for number in range(len(labels), len(scores)))]
    return dict(zip(named, scores, strict=True))
