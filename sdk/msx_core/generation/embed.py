"""A request for the embedding of a text."""

from msx_core.generation.wire import Integer, Positive, WireStruct


class EmbedRequest(WireStruct):
    """One text, or its token ids. The server sends a list of texts as one request for each."""

    input: str | tuple[Integer, ...]
    dimensions: Positive | None = None
    """Keep the first dimensions only, and normalise again (Matryoshka embeddings)."""
    truncate: Positive | None = None
    truncate_left: bool = False
    """Cut the beginning, not the end."""
    normalize: bool | None = None
    """Vectors of length 1; None: as the model has it."""
    prompt_name: str | None = None
    """One of the model's prompts, which is put before the text; None: the model's default, if it has one."""


class EmbedReply(WireStruct):
    """`embedding` is little-endian float32."""

    embedding: bytes
    prompt_tokens: int
