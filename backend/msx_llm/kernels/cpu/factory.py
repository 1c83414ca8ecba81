"""The cells of a CPU."""

from collections.abc import Mapping, Sequence
from typing import Any

import mindspore as ms
from mindspore import nn, ops

from msx_llm.kernels.cpu.cells import (
    GATES,
    CpuEmbedding,
    Float32Head,
    HeadNorm,
    QueryRotary,
    ResidualNorm,
    Rotary,
    SeparateLinears,
    SigmoidGate,
    WholeEmbedding,
)
from msx_llm.kernels.cpu.clamped import ClampedExperts
from msx_llm.kernels.cpu.delta_state import SlotDeltaState
from msx_llm.kernels.cpu.experts import BlockedExperts, ExpertRouter, SharedGate
from msx_llm.kernels.cpu.inputs import SlotStepInputs
from msx_llm.kernels.cpu.latent import SlotLatentAttention
from msx_llm.kernels.cpu.packed import PackedLinears, PackedRow
from msx_llm.kernels.cpu.packed_experts import PackedExperts
from msx_llm.kernels.cpu.sinks import SinkAttention
from msx_llm.kernels.cpu.slot_runner import SlotRunner
from msx_llm.kernels.cpu.slots import ReadingSlotAttention, SlotAttention
from msx_llm.kernels.cpu.widened import WidenedLinears
from msx_llm.kernels.low_rank import AddedLowRank, FirstProducts
from msx_llm.models.config import DecoderConfig
from msx_llm.models.delta import DeltaConfig
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.kernels import Heads, LayerKind, Projection
from msx_llm.models.latent import LatentConfig
from msx_llm.models.loaded import LoadedDecoder
from msx_llm.models.quantised.format import LinearFormat
from msx_sdk.mindspore.layers import AllReduce, RowParallelLinear
from msx_sdk.mindspore.parallel import Parallel


class CpuKernels:
    """A `Kernels`. Heads are an axis of their own between `projections` and `attention`."""

    def __init__(self, dtype: Any = ms.float32) -> None:
        self.dtype = dtype

    def norm(self, size: int, eps: float) -> Any:
        return ResidualNorm(size, eps, self.dtype)

    def head_norm(self, size: int, eps: float) -> Any:
        return HeadNorm(size, eps, self.dtype)

    def projections(self, inputs: int, outputs: Mapping[str, Projection], bias: bool) -> Any:
        return SeparateLinears(inputs, outputs, bias, self.dtype)

    def row_linear(self, inputs: int, outputs: int, parallel: Parallel, bias: bool, sums: bool = True) -> Any:
        linear = RowParallelLinear(inputs, outputs, parallel, bias=bias, dtype=self.dtype)
        if not sums:
            linear.reduce = nn.Identity()
        return linear

    def quantised_projections(
        self, inputs: int, outputs: Mapping[str, Projection], bias: bool, formats: Mapping[str, LinearFormat | None]
    ) -> Any:
        return PackedLinears(formats, inputs, outputs, bias, self.dtype)

    def quantised_row(
        self, inputs: int, outputs: int, parallel: Parallel, bias: bool, form: LinearFormat, sums: bool = True
    ) -> Any:
        linear = PackedRow(form, inputs, outputs, parallel, bias)
        if not sums:
            linear.reduce = nn.Identity()
        return linear

    def reduce(self, parallel: Parallel) -> Any:
        return AllReduce(parallel)

    def router(self, hidden: int, experts: ExpertsConfig) -> Any:
        return ExpertRouter(hidden, experts, self.dtype)

    def experts(self, hidden: int, experts: ExpertsConfig, parallel: Parallel) -> Any:
        kind = BlockedExperts if experts.clamp is None else ClampedExperts
        return kind(hidden, experts, parallel, self.dtype)

    def quantised_experts(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, form: LinearFormat) -> Any:
        return PackedExperts(hidden, experts, parallel, self.dtype, form=form)

    def shared_gate(self, hidden: int) -> Any:
        return SharedGate(hidden, self.dtype)

    def adapted(self, linears: Any, inputs: int, outputs: Sequence[int], width: int) -> Any:
        """Weights that stay integers cannot have rows of numbers below them."""
        layers = len(outputs)
        first = FirstProducts(ops, ops.Split(-1, layers), inputs, layers, width, self.dtype, flat=False)
        if isinstance(linears, SeparateLinears):
            return WidenedLinears(linears, linears.linears, first)
        if isinstance(linears, RowParallelLinear):
            return WidenedLinears(linears, [linears], first)
        return AddedLowRank(ops, linears, first, outputs, self.dtype)

    def add(self) -> Any:
        return ops.Add()

    def mul(self) -> Any:
        return ops.Mul()

    def gather(self) -> Any:
        return ops.Gather()

    def gate(self, activation: str) -> Any:
        return GATES[activation]()

    def rotary(self, heads: Heads, kind: int) -> Any:
        return Rotary(heads, kind)

    def attention(self, heads: Heads, layer: int, kind: int) -> Any:
        return SlotAttention(heads, kind)

    def query_rotary(self, kind: int) -> Any:
        return QueryRotary(kind)

    def output_gate(self) -> Any:
        return SigmoidGate()

    def delta_state(self, delta: DeltaConfig, parallel: Parallel, eps: float) -> Any:
        return SlotDeltaState(delta, parallel, eps)

    def reading_attention(self, heads: Heads, source: int, kind: int) -> Any:
        return ReadingSlotAttention(heads, source, kind)

    def sink_attention(self, heads: Heads, parallel: Parallel, layer: int, kind: int) -> Any:
        return SinkAttention(heads, parallel, kind)

    def latent_attention(self, heads: Heads, latent: LatentConfig, parallel: Parallel, layer: int, kind: int) -> Any:
        return SlotLatentAttention(heads, latent, parallel, kind, self.dtype)

    def step_inputs(self, config: DecoderConfig, kinds: tuple[LayerKind, ...]) -> Any:
        return SlotStepInputs(config, kinds, self.dtype)

    def embedding(self, vocabulary: int, width: int, parallel: Parallel) -> Any:
        kind = CpuEmbedding if parallel.tp_size > 1 else WholeEmbedding
        return kind(vocabulary, width, parallel, dtype=self.dtype)

    def head(self, vocabulary: int, width: int, parallel: Parallel) -> Any:
        return Float32Head(vocabulary, width, parallel, dtype=self.dtype)

    def runner(self, loaded: LoadedDecoder, chooses: bool) -> SlotRunner:
        return SlotRunner(*loaded)

    def tie(self, embedding: Any, head: Any) -> None:
        embedding.weight, embedding.tied = head.weight, True
