"""Latent attention (MLA): keys and values of all heads of a token are made of one short vector, and that is what the
cache holds, beside one key with the token's position."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from msx_llm.models.experts import EXPERT_KEYS, ExpertKeys
from msx_llm.models.key_types import Size

Shape = tuple[int, ...]


class LatentKeys(ExpertKeys, frozen=True, kw_only=True):
    """The keys of `config.json`, with transformers' defaults; models with such attention have experts, too."""

    q_lora_rank: Size | None = 1536
    kv_lora_rank: Size = 512
    qk_nope_head_dim: Size = 128
    qk_rope_head_dim: Size = 64
    v_head_dim: Size = 128
    rope_interleave: bool | None = True


LATENT_KEYS = frozenset(LatentKeys.__struct_fields__) - EXPERT_KEYS


class LatentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of a head, but for `rank`, which all heads share."""

    rank: int
    """Numbers of what keys and values are made of."""
    still: int
    """Numbers of a query and of a key that do not turn."""
    turning: int
    """Numbers that turn; of the key, all heads have the same."""
    value: int
    query_rank: int | None = None
    """Queries are made of a vector as short as this, too."""
    pairs: bool = True
    """Whether neighbours turn together, in the files."""

    @property
    def width(self) -> int:
        """Numbers of a token in the cache."""
        return self.rank + self.turning

    @property
    def query(self) -> int:
        return self.still + self.turning

    def shapes(self, hidden: int, heads: int) -> Iterator[tuple[str, Shape]]:
        """The tensors of a layer's attention."""
        if self.query_rank is None:
            yield "q_proj.weight", (heads * self.query, hidden)
        else:
            yield "q_a_proj.weight", (self.query_rank, hidden)
            yield "q_a_layernorm.weight", (self.query_rank,)
            yield "q_b_proj.weight", (heads * self.query, self.query_rank)
        yield "kv_a_proj_with_mqa.weight", (self.width, hidden)
        yield "kv_a_layernorm.weight", (self.rank,)
        yield "kv_b_proj.weight", (heads * (self.still + self.value), self.rank)
        yield "o_proj.weight", (hidden, heads * self.value)

    def orders(self) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
        """Place in the file of each number of a head, for layers whose numbers turn."""
        if not self.pairs:
            return {}
        turned = np.concatenate([np.arange(0, self.turning, 2), np.arange(1, self.turning, 2)])
        of_queries = np.concatenate([np.arange(self.still), self.still + turned])
        of_keys = np.concatenate([np.arange(self.rank), self.rank + turned])
        return {"q_proj": of_queries, "q_b_proj": of_queries, "kv_a_proj_with_mqa": of_keys}


def latent_of(keys: LatentKeys) -> LatentConfig:
    return LatentConfig(
        rank=keys.kv_lora_rank,
        still=keys.qk_nope_head_dim,
        turning=keys.qk_rope_head_dim,
        value=keys.v_head_dim,
        query_rank=keys.q_lora_rank,
        pairs=keys.rope_interleave is not False,
    )


def read_absorbed(weights: Any, name: str, latent: LatentConfig, heads: slice) -> tuple[Any, Any]:
    """Read the rank's matrices from the vector to keys [heads, still, rank] and to values [heads, value, rank]."""
    size = latent.still + latent.value
    whole = weights.read(f"{name}.weight", slice(heads.start * size, heads.stop * size))
    whole = whole.reshape(-1, size, latent.rank)
    return whole[:, : latent.still], whole[:, latent.still :]
