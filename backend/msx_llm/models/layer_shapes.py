"""The tensors of what only some families have in a layer, by the engine's names."""

from collections.abc import Iterator

from msx_llm.models.config import DecoderConfig

EMBEDDING, PRODUCT, NORM = "embed_tokens_per_layer", "per_layer_model_projection", "per_layer_projection_norm"

Shape = tuple[int, ...]


def input_shapes(config: DecoderConfig) -> Iterator[tuple[str, Shape]]:
    """The tensors of all layers together, behind the prefix of the files."""
    if width := config.layers * config.layer_inputs:
        yield f"{EMBEDDING}.weight", (config.layer_vocabulary, width)
        yield f"{PRODUCT}.weight", (width, config.hidden_size)
        yield f"{NORM}.weight", (config.layer_inputs,)


def gate_shapes(config: DecoderConfig) -> Iterator[tuple[str, Shape]]:
    """The tensors of one layer."""
    if size := config.layer_inputs:
        yield "per_layer_input_gate.weight", (size, config.hidden_size)
        yield "per_layer_projection.weight", (config.hidden_size, size)
        yield "post_per_layer_input_norm.weight", (config.hidden_size,)
