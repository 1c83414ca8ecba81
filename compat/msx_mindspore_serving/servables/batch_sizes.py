"""Checks of a model when it is loaded: its batch dimension, and what the methods expect of it."""

from collections.abc import Iterator, Sequence

from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_core.servables import Model, ModelDeclaration
from msx_mindspore_serving.servables.models import Subgraph
from msx_sdk.errors import HandlerLoadError

_FAILED = "Raise failed: "


def check_counts(model: Model, subgraphs: Sequence[Subgraph]) -> None:
    """Raises HandlerLoadError if stages give the model another number of values than it has."""
    for number, counts in model.counts.items():
        own = len(subgraphs[number].inputs), len(subgraphs[number].outputs)
        for what, registered, has in zip(("inputs", "outputs"), counts, own, strict=True):
            if registered != has:
                raise HandlerLoadError(
                    f"{_FAILED}The {what} count {registered} in register_method not equal to the count {has} defined "
                    f"in model, model info: {model.key}, subgraph: {number}"
                )


def batch_size_of(declaration: ModelDeclaration, subgraphs: Sequence[Subgraph]) -> int:
    """The instances of one call; 0 where any number can be. Raises HandlerLoadError."""
    if not declaration.with_batch_dim:
        return 1
    sizes = [_batch_size(declaration, subgraph) for subgraph in subgraphs]
    for size in sizes:
        if size != sizes[0]:
            raise HandlerLoadError(
                f"{_FAILED}Expect batch size to be same, last batch size: {sizes[0]}, current batch size: {size}"
            )
    return max(0, sizes[0])


def _batch_size(declaration: ModelDeclaration, subgraph: Subgraph) -> int:
    """-1 where it is not fixed."""
    batch: int | None = None
    for what, at, shape in _batched(declaration, subgraph):
        if not shape:
            raise HandlerLoadError(
                f"{_FAILED}The shape of model {what} {at} cannot be empty, when with_batch_dim is true and "
                f"without_batch_dim_inputs is {list(declaration.without_batch_dim_inputs)}"
            )
        if batch is None:
            batch = shape[0]
        elif batch != shape[0]:
            raise HandlerLoadError(
                f"{_FAILED}The shape {list(shape)} of model {what} {at} does not match current batch size {batch}"
            )
    return -1 if batch is None else batch


def _batched(declaration: ModelDeclaration, subgraph: Subgraph) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """The tensors with a batch dimension whose shape is known."""
    without = declaration.without_batch_dim_inputs
    kinds: tuple[tuple[str, Sequence[TensorSpec]], ...] = (("input", subgraph.inputs), ("output", subgraph.outputs))
    for what, specs in kinds:
        for at, spec in enumerate(specs):
            if spec.shape != DYNAMIC_RANK and not (what == "input" and at in without):
                yield what, at, spec.shape
