"""The cells of an NPU."""

from collections.abc import Mapping, Sequence
from typing import Any

from mindspore import nn

from msx_llm.kernels.ascend import operators
from msx_llm.kernels.ascend.attention import BlockAttention, ReadingBlockAttention
from msx_llm.kernels.ascend.cells import GATES, FusedHeadNorm, FusedQueryRotary, FusedRotary, Norm
from msx_llm.kernels.ascend.clamped import RoutedClampedExperts
from msx_llm.kernels.ascend.delta import no_delta_nets
from msx_llm.kernels.ascend.experts import RoutedExperts, SharedExpertGate, router_of
from msx_llm.kernels.ascend.flat_runner import FlatRunner
from msx_llm.kernels.ascend.inputs import FlatStepInputs
from msx_llm.kernels.ascend.integer_experts import RoutedIntegerExperts
from msx_llm.kernels.ascend.latent import LatentBlockAttention
from msx_llm.kernels.ascend.linear import EvenSplit, FlatEmbedding, FusedLinear, LogitsHead, RowLinear
from msx_llm.kernels.ascend.quantised import QuantisedLinears, QuantisedRow
from msx_llm.kernels.ascend.reduce import Reduce
from msx_llm.kernels.ascend.sinks import SinkBlockAttention
from msx_llm.kernels.low_rank import AddedLowRank, FirstProducts
from msx_llm.models.config import DecoderConfig
from msx_llm.models.delta import DeltaConfig
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.kernels import Heads, LayerKind, Projection
from msx_llm.models.latent import LatentConfig
from msx_llm.models.loaded import LoadedDecoder
from msx_llm.models.quantised.format import LinearFormat
from msx_sdk.mindspore.parallel import Parallel


class AscendKernels:
    """A `Kernels` in float16 or bfloat16. Everything is flat: [T, width]."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def norm(self, size: int, eps: float) -> Any:
        return Norm(size, eps, self.dtype)

    def head_norm(self, size: int, eps: float) -> Any:
        return FusedHeadNorm(size, eps, self.dtype)

    def projections(self, inputs: int, outputs: Mapping[str, Projection], bias: bool) -> Any:
        return FusedLinear(inputs, outputs, bias, self.dtype)

    def row_linear(self, inputs: int, outputs: int, parallel: Parallel, bias: bool, sums: bool = True) -> Any:
        linear = RowLinear(inputs, outputs, parallel, bias, self.dtype)
        if not sums:
            linear.reduce = nn.Identity()
        return linear

    def quantised_projections(
        self, inputs: int, outputs: Mapping[str, Projection], bias: bool, formats: Mapping[str, LinearFormat | None]
    ) -> Any:
        taken = {name: form if form is not None and form.grouped_for_npus else None for name, form in formats.items()}
        if not any(taken.values()):
            return self.projections(inputs, outputs, bias)
        return QuantisedLinears(inputs, outputs, bias, taken, self.dtype)

    def quantised_row(
        self, inputs: int, outputs: int, parallel: Parallel, bias: bool, form: LinearFormat, sums: bool = True
    ) -> Any:
        if not form.grouped_for_npus:
            return self.row_linear(inputs, outputs, parallel, bias, sums)
        linear = QuantisedRow(form, inputs, outputs, parallel, bias, self.dtype)
        if not sums:
            linear.reduce = nn.Identity()
        return linear

    def reduce(self, parallel: Parallel) -> Any:
        return Reduce(parallel)

    def router(self, hidden: int, experts: ExpertsConfig) -> Any:
        return router_of(hidden, experts, self.dtype)

    def experts(self, hidden: int, experts: ExpertsConfig, parallel: Parallel) -> Any:
        kind = RoutedExperts if experts.clamp is None else RoutedClampedExperts
        return kind(hidden, experts, parallel, self.dtype)

    def quantised_experts(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, form: LinearFormat) -> Any:
        """Numbers of 16 bits where groups of inputs have scales: no grouped product is documented that takes them."""
        if not form.by_output:
            return self.experts(hidden, experts, parallel)
        return RoutedIntegerExperts(hidden, experts, parallel, self.dtype, form=form)

    def shared_gate(self, hidden: int) -> Any:
        return SharedExpertGate(hidden, self.dtype)

    def adapted(self, linears: Any, inputs: int, outputs: Sequence[int], width: int) -> Any:
        layers = len(outputs)
        first = FirstProducts(operators, EvenSplit(width, layers), inputs, layers, width, self.dtype, flat=True)
        return AddedLowRank(operators, linears, first, outputs, self.dtype)

    def add(self) -> Any:
        return operators.Add()

    def mul(self) -> Any:
        return operators.Mul()

    def gather(self) -> Any:
        return operators.Gather()

    def gate(self, activation: str) -> Any:
        return GATES[activation]()

    def rotary(self, heads: Heads, kind: int) -> Any:
        return FusedRotary(kind)

    def attention(self, heads: Heads, layer: int, kind: int) -> Any:
        return BlockAttention(heads, layer, kind)

    def query_rotary(self, kind: int) -> Any:
        return FusedQueryRotary(kind)

    def output_gate(self) -> Any:
        raise no_delta_nets()  # the families whose attention has a gate

    def delta_state(self, delta: DeltaConfig, parallel: Parallel, eps: float) -> Any:
        raise no_delta_nets()

    def reading_attention(self, heads: Heads, source: int, kind: int) -> Any:
        return ReadingBlockAttention(heads, source, kind)

    def sink_attention(self, heads: Heads, parallel: Parallel, layer: int, kind: int) -> Any:
        return SinkBlockAttention(heads, parallel, (layer, kind), self.dtype)

    def latent_attention(self, heads: Heads, latent: LatentConfig, parallel: Parallel, layer: int, kind: int) -> Any:
        return LatentBlockAttention(heads, latent, parallel, layer, self.dtype)

    def step_inputs(self, config: DecoderConfig, kinds: tuple[LayerKind, ...]) -> Any:
        return FlatStepInputs(config, kinds, self.dtype)

    def embedding(self, vocabulary: int, width: int, parallel: Parallel) -> Any:
        return FlatEmbedding(vocabulary, width, parallel, self.dtype)

    def head(self, vocabulary: int, width: int, parallel: Parallel) -> Any:
        return LogitsHead(vocabulary, width, parallel, self.dtype)

    def runner(self, loaded: LoadedDecoder, chooses: bool) -> FlatRunner:
        return FlatRunner(loaded.decoder, loaded.config, loaded.limits, loaded.parts, chooses)

    def tie(self, embedding: Any, head: Any) -> None:
        embedding.weight = head.weight  # [vocabulary, width] in both
