"""A layer's MLP with experts beside it, which read its state before the norm; each of both is normed for itself."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill, load_shards
from msx_core.mindspore.weights import Weights
from msx_llm.models.config import DecoderConfig
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.kernels import Kernels
from msx_llm.models.linears import LayerLinears
from msx_sdk.mindspore.parallel import Parallel


class NormedRouter(nn.Cell):  # type: ignore[misc]
    """x [T, hidden] -> weights, numbers [T, chosen], as of `Kernels.router`, of a norm with weights of the router. Each
    expert's results have a factor."""

    loads_inner = True

    def __init__(self, config: DecoderConfig, experts: ExpertsConfig, kernels: Kernels) -> None:
        super().__init__()
        self.norm = kernels.norm(config.hidden_size, config.norm_eps)
        self.router, self.chosen = kernels.router(config.hidden_size, experts), experts.chosen
        self.factors = Parameter(initializer("ones", (experts.count,), kernels.dtype), name="factors")

    def construct(self, x: Any) -> Any:
        weights, numbers = self.router(self.norm(x)[0])
        factors = ops.gather(self.factors, numbers.reshape((-1,)), 0)
        return weights * factors.reshape((-1, self.chosen)), numbers

    def load_shard(self, weights: Weights, name: str) -> None:
        scale = weights.read(f"{name}.scale")
        fill(self.norm.weight, scale * len(scale) ** -0.5)
        fill(self.factors, weights.read(f"{name}.per_expert_scale"))
        load_shards(self.router, weights, name)


class ExpertsBeside(nn.Cell):  # type: ignore[misc]
    """Ranks divide the MLP and the experts as they do elsewhere; norms are behind the sums over ranks."""

    loads_inner = True

    def __init__(
        self,
        config: DecoderConfig,
        experts: ExpertsConfig,
        kernels: Kernels,
        linears: LayerLinears,
        parallel: Parallel,
        dense: Any,
    ) -> None:
        super().__init__()
        sizes = config.hidden_size, config.norm_eps
        self.dense, self.router = dense, NormedRouter(config, experts, kernels)
        self.experts = linears.experts(config.hidden_size, experts, parallel)
        self.reduce, self.add = kernels.reduce(parallel), kernels.add()
        self.dense_norm, self.before_norm, self.after_norm = (kernels.norm(*sizes) for _ in range(3))

    def construct(self, x: Any, state: Any) -> Any:
        """x: the state, normed for the MLP"""
        made = self.experts(self.before_norm(state)[0], *self.router(state))
        return self.add(self.dense_norm(self.dense(x))[0], self.after_norm(self.reduce(made))[0])

    def load_shard(self, weights: Weights, name: str) -> None:
        load_shards(self.dense, weights, name)
        load_shards(self.router, weights, f"{name}.gate")
        load_shards(self.experts, weights, f"{name}.experts")
        for norm in ("dense_norm", "before_norm", "after_norm"):
            load_shards(getattr(self, norm), weights, f"{name}.{norm}")
