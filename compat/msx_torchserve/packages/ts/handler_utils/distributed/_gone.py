"""Replacement of the helpers of TorchServe's parallel handlers."""

from typing import NoReturn

from msx_sdk import HandlerLoadError

PARALLEL = (
    "derive the handler from msx_sdk.mindspore.PipelineHandler or TensorParallelHandler and set parallelType in "
    "model-config.yaml; docs/parallel-models.md shows how"
)
GENERATION = (
    "pack the model with --handler text_generation, which brings an engine and OpenAI's API; docs/language-models.md "
    "shows how"
)


def gone(what: str, instead: str = PARALLEL) -> NoReturn:
    """Raises HandlerLoadError."""
    raise HandlerLoadError(f"{what} is not served here: {instead}")
