"""The memory of each rank, and of the host."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from msx_core.sizing import RankSizing
from msx_llm.division import own_layers
from msx_llm.kernels.device import EngineDevice
from msx_llm.limits import PREFILL
from msx_llm.memory import DEVICE_FRACTION, HOST_FRACTION
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_llm.sizing.parts import activation_bytes, adapter_bytes, cache_bytes, graph_bytes
from msx_llm.sizing.products import Product
from msx_llm.sizing.quantised import weight_bytes
from msx_sdk.mindspore.parallel import Parallel

PROCESS = 900 << 20
"""Bytes of a worker without its weights: MindSpore, its graphs and the tokenizer, as measured on a CPU."""


@dataclass(frozen=True)
class MemoryPlan:
    """Memory of a model on such devices. The first rank has all of a small model for drafts; each rank has the parts of
    adapters that it has of the layers."""

    config: DecoderConfig
    product: Product
    draft: DecoderConfig | None = None
    adapters: AdapterShape | None = None

    def rank(self, rank: Parallel, texts: int, context: int) -> RankSizing:
        weights, (device, peaks) = weight_bytes(self.config, rank), self.product[1:]
        memory = peaks.memory // rank.world_size if device.shares_memory else peaks.memory
        adapters = 0 if self.adapters is None else adapter_bytes(self.config, rank, self.adapters)
        draft = 0 if rank.rank else self._draft(texts, context)
        activations = activation_bytes(self.config, rank, texts, context, min(PREFILL[-1], context))
        graphs = graph_bytes(self.config, rank)
        return RankSizing(
            rank=rank.rank,
            layers=len(own_layers(self.config, rank)),
            weights=weights,
            cache=cache_bytes(self.config, rank, texts, context),
            adapters=adapters,
            draft=draft,
            activations=activations,
            graphs=graphs,
            memory=memory,
            reserve=_reserve(device, memory, weights + adapters + draft, activations + graphs),
        )

    def fits(self, group: Parallel, texts: int, context: int) -> bool:
        return all(self.rank(rank, texts, context).free >= 0 for rank in first_ranks(group))

    def host(self, group: Parallel) -> int:
        """The processes of one group, and all weights while they are on their way to devices."""
        processes = group.world_size * PROCESS
        if self.product.device.shares_memory:
            return processes
        weights = sum(weight_bytes(self.config, rank) for rank in first_ranks(group)) * group.tp_size
        return processes + weights + (0 if self.draft is None else weight_bytes(self.draft, self._alone))

    @property
    def _alone(self) -> Parallel:
        return Parallel(target=self.product.device.target)

    def _draft(self, texts: int, context: int) -> int:
        """Weights, graphs, and the cache of as many texts."""
        if self.draft is None:
            return 0
        config, rank = self.draft, self._alone
        return weight_bytes(config, rank) + graph_bytes(config, rank) + cache_bytes(config, rank, texts, context)


def first_ranks(group: Parallel) -> Iterator[Parallel]:
    """One of each stage: the ranks of a stage have parts of the same size."""
    return (replace(group, rank=group.peer(stage)) for stage in range(group.stages))


def _reserve(device: EngineDevice, memory: int, weights: int, step: int) -> int:
    """Bytes that the engine's own sizing keeps from the cache, those of the largest `step` included: see `memory`."""
    if device.shares_memory:
        return max(int(memory * (1 - HOST_FRACTION)) - weights, 0)
    return memory - int(memory * DEVICE_FRACTION) + step
