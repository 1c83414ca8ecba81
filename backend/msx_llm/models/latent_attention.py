"""Latent attention as a cell of a layer; the devices' cells hold the cache."""

from __future__ import annotations

from typing import Any

from mindspore import nn

from msx_core.mindspore.loading import fill, load_shards
from msx_core.mindspore.weights import Weights
from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import Heads, Kernels, Projection
from msx_llm.models.latent import LatentConfig, read_absorbed
from msx_sdk.mindspore.parallel import Parallel

EPS = 1e-6
"""Epsilon in the norms of short vectors, whatever `rms_norm_eps` says."""


class LatentAttention(nn.Cell):  # type: ignore[misc]
    """Heads are divided over the ranks; each rank has the whole vector that keys and values are made of. `whole` is a
    group of this rank alone."""

    def __init__(
        self,
        config: DecoderConfig,
        latent: LatentConfig,
        kernels: Kernels,
        parallel: Parallel,
        whole: Parallel,
        place: tuple[int, int],
    ) -> None:
        """place: the layer and its kind, as of `Kernels.attention`"""
        super().__init__()
        queries, rank = config.heads * latent.query, latent.query_rank
        first = Projection(queries, parallel) if rank is None else Projection(rank, whole)
        down = {"q_proj" if rank is None else "q_a_proj": first, "kv_a_proj_with_mqa": Projection(latent.width, whole)}
        self.down, self.short = kernels.projections(config.hidden_size, down, False), rank is not None
        if rank is not None:
            self.q_a_layernorm = kernels.norm(rank, EPS)
            self.up = kernels.projections(rank, {"q_b_proj": Projection(queries, parallel)}, False)
        heads = Heads(config.heads // parallel.tp_size, 1, latent.width, config.attention_scale)
        self.attend = kernels.latent_attention(heads, latent, parallel, *place)
        self.o_proj = kernels.row_linear(config.heads * latent.value, config.hidden_size, parallel, False)

    def construct(self, x: Any, step: Any) -> Any:
        q, latent = self.down(x)
        if self.short:
            q = self.up(self.q_a_layernorm(q)[0])[0]
        return self.o_proj(self.attend(q, latent, step))


def load_absorbed(cell: Any, weights: Weights, name: str) -> None:
    """Fills a device's cell: `of_keys` and `of_values` of its `own` heads, and its `norm`."""
    place = name.rpartition(".")[0]
    keys, values = read_absorbed(weights, f"{place}.kv_b_proj", cell.latent, cell.own)
    fill(cell.of_keys, keys)
    fill(cell.of_values, values)
    load_shards(cell.norm, weights, f"{place}.kv_a_layernorm")
