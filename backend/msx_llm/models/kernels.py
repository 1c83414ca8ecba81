"""The operations that differ between devices, as cells of a decoder; the decoder itself is the same on all.

In shapes, T is the tokens of a whole step, N the query heads of a rank, K its key-value heads, D the size of a head.
A *step* is the tuple that `StepInputs` makes once from a step's inputs; every layer gets it.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from msx_llm.models.config import DecoderConfig
from msx_llm.models.delta import DeltaConfig
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.latent import LatentConfig
from msx_llm.models.quantised.format import LinearFormat
from msx_sdk.mindspore.parallel import Parallel

Array = np.ndarray[Any, np.dtype[Any]]
Kind = TypeVar("Kind", bound=Hashable)


@dataclass(frozen=True)
class Heads:
    """The heads of one rank."""

    queries: int
    keys: int
    size: int
    factor: float | None = None
    """The factor of the scores; None: one over the root of the size."""

    @property
    def scale(self) -> float:
        return 1 / math.sqrt(self.size) if self.factor is None else self.factor

    def own(self, parallel: Parallel) -> slice:
        """The rank's query heads among those of all ranks."""
        first = self.queries * parallel.tp_rank
        return slice(first, first + self.queries)


class LayerKind(NamedTuple):
    """Properties of a step that the layers of one kind share: their window, the place of their rope in the
    config's `ropes`, and the heads of a rank."""

    window: int | None
    rope: int
    heads: Heads


def distinct(values: Iterable[Kind]) -> tuple[tuple[Kind, ...], tuple[int, ...]]:
    """The values that differ, and the place of each value among them."""
    every = tuple(values)
    known = tuple(dict.fromkeys(every))
    return known, tuple(known.index(value) for value in every)


@dataclass(frozen=True)
class Projection:
    """One of the linear layers that have the same input: its outputs over all of `parallel`'s ranks."""

    outputs: int
    parallel: Parallel


class StepInputs(Protocol):
    """A cell: the inputs of a step -> what every layer gets of it."""

    def __call__(self, *inputs: Any) -> Any: ...

    def prepare(self, length: int) -> None:
        """Makes the tables of angles for texts of up to `length` tokens."""


class Kernels(Protocol):
    """Makes a rank's cells of one data type. Weights have their names in Hugging Face's files."""

    dtype: Any

    def norm(self, size: int, eps: float) -> Any:
        """RMS norm: x, residual [T, size], or None for no residual -> (normed, x + residual)."""

    def head_norm(self, size: int, eps: float) -> Any:
        """RMS norm of each head: x [T, heads*size] -> the same shape."""

    def projections(self, inputs: int, outputs: Mapping[str, Projection], bias: bool) -> Any:
        """Linear layers with one input, by their names in the files: x [T, inputs] -> a tuple of [T, outputs]."""

    def row_linear(self, inputs: int, outputs: int, parallel: Parallel, bias: bool, sums: bool = True) -> Any:
        """Divided by its inputs and summed over the ranks: [T, inputs / ranks] -> [T, outputs]. Without `sums` each
        rank has its part of the sum."""

    def quantised_projections(
        self, inputs: int, outputs: Mapping[str, Projection], bias: bool, formats: Mapping[str, LinearFormat | None]
    ) -> Any:
        """`projections`, some of which are quantised: None for those that are not."""

    def quantised_row(
        self, inputs: int, outputs: int, parallel: Parallel, bias: bool, form: LinearFormat, sums: bool = True
    ) -> Any:
        """`row_linear`, of which each rank has whole groups."""

    def reduce(self, parallel: Parallel) -> Any:
        """x -> the sum over the ranks."""

    def router(self, hidden: int, experts: ExpertsConfig) -> Any:
        """x [T, hidden] -> weights of x's data type and numbers of the chosen experts int32, both [T, chosen]."""

    def experts(self, hidden: int, experts: ExpertsConfig, parallel: Parallel) -> Any:
        """x [T, hidden], weights, numbers [T, chosen] -> [T, hidden], this rank's part of the sum."""

    def quantised_experts(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, form: LinearFormat) -> Any:
        """`experts`, all in one format; each rank has whole groups."""

    def shared_gate(self, hidden: int) -> Any:
        """x, y [T, hidden] -> y times the sigmoid of a number for each token."""

    def adapted(self, linears: Any, inputs: int, outputs: Sequence[int], width: int) -> Any:
        """`projections`, or of one output a `row_linear`, with adapters of `width` ranks in all: x, columns
        [T, width * layers] -> a tuple of each layer's result, with what its adapters add. `inputs` and `outputs` are
        this rank's.

        It has `put(ranks, both)`: the A [inputs, n] and B [n, outputs] of each layer, for these n of all ranks."""

    def add(self) -> Any:
        """x, y of one shape -> their sum."""

    def mul(self) -> Any:
        """x [T, width], y of the same shape or [1] -> their product."""

    def gather(self) -> Any:
        """x [T, width], rows [R], 0 -> [R, width]."""

    def gate(self, activation: str) -> Any:
        """gate, up [T, inner] -> activation(gate) * up; silu or gelu_tanh."""

    def rotary(self, heads: Heads, kind: int) -> Any:
        """q [T, N*D], k [T, K*D], step -> both, turned by the angles of their positions; `kind` is a place in the
        `kinds` of `step_inputs`."""

    def attention(self, heads: Heads, layer: int, kind: int) -> Any:
        """q, k, v, step -> [T, N*D]. Keeps k and v, and lets q attend to what its texts have by now.

        `layer` counts from 0 on each rank; `kind` is a place in the `kinds` of `step_inputs`.
        """

    def query_rotary(self, kind: int) -> Any:
        """q [T, N*D], step -> q, turned as `rotary` does."""

    def reading_attention(self, heads: Heads, source: int, kind: int) -> Any:
        """q, step -> [T, N*D]. Attends to what the layer `source` of this rank has kept."""

    def sink_attention(self, heads: Heads, parallel: Parallel, layer: int, kind: int) -> Any:
        """`attention` with a number for each query head that takes a share of its softmax. Raises HandlerLoadError."""

    def output_gate(self) -> Any:
        """x, gate [T, N*D] -> x times the sigmoids of the gate."""

    def delta_state(self, delta: DeltaConfig, parallel: Parallel, eps: float) -> Any:
        """The convolution, the delta rule and the norm of a gated delta net, without its linear layers: (q, k, v), the
        gate [T, values], the rates b, a [T, value heads], step -> [T, values]. Keeps the states of its texts. Raises
        HandlerLoadError where the device has no such cell."""

    def latent_attention(self, heads: Heads, latent: LatentConfig, parallel: Parallel, layer: int, kind: int) -> Any:
        """q [T, N*latent.query], vectors [T, latent.width], step -> [T, N*latent.value]. Norms and turns the vectors,
        and keeps them."""

    def step_inputs(self, config: DecoderConfig, kinds: tuple[LayerKind, ...]) -> StepInputs: ...

    def embedding(self, vocabulary: int, width: int, parallel: Parallel) -> Any:
        """ids [T] -> [T, width]."""

    def head(self, vocabulary: int, width: int, parallel: Parallel) -> Any:
        """[rows, width] -> logits float32 [rows, vocabulary] on every rank."""

    def runner(self, loaded: Any, chooses: bool) -> Any:
        """The `EngineRunner` of a `LoadedDecoder` of these cells. `chooses`: tokens are chosen on the device, if it
        can. Raises HandlerLoadError."""

    def tie(self, embedding: Any, head: Any) -> None:
        """Give the embedding the head's weight from now on, as the head lays it out and reads it."""
