"""A mixture of experts in the place of an MLP."""

from __future__ import annotations

from typing import Any

from mindspore import nn

from msx_core.mindspore.loading import load_shards
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.kernels import Kernels
from msx_llm.models.linears import LayerLinears
from msx_sdk.mindspore.parallel import Parallel


class SparseMLP(nn.Cell):  # type: ignore[misc]
    """Every rank has a part of every expert, by its inner width, or some experts whole, and sees every token, so that
    one sum over the ranks is behind all of them. `shared` is the MLP that every token takes, without its own sum."""

    loads_inner = True

    def __init__(
        self,
        hidden: int,
        config: ExpertsConfig,
        kernels: Kernels,
        linears: LayerLinears,
        parallel: Parallel,
        shared: Any,
    ) -> None:
        super().__init__()
        self.config, self.has_shared, self.gated = config, shared is not None, config.gated
        self.router = kernels.router(hidden, config)
        self.experts = linears.experts(hidden, config, parallel)
        if self.has_shared:
            self.shared, self.add = shared, kernels.add()
        if self.gated:
            self.shared_gate = kernels.shared_gate(hidden)
        self.reduce = kernels.reduce(parallel)

    def construct(self, x: Any) -> Any:
        weights, chosen = self.router(x)
        y = self.experts(x, weights, chosen)
        if self.has_shared:
            shared = self.shared(x)
            if self.gated:
                shared = self.shared_gate(x, shared)
            y = self.add(y, shared)
        return self.reduce(y)

    def load_shard(self, weights: Any, name: str) -> None:
        load_shards(self.router, weights, f"{name}.{'gate' if self.config.clamp is None else 'router'}")
        load_shards(self.experts, weights, f"{name}.experts")
        if self.has_shared:
            load_shards(self.shared, weights, f"{name}.{self.config.shared_name}")
        if self.gated:
            load_shards(self.shared_gate, weights, f"{name}.shared_expert_gate")
