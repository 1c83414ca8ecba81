"""Requests of `msx-serve plan` to the engine's arithmetic, and the answers. Sizes are bytes, times are seconds."""

from typing import Annotated

import msgspec
from msgspec import Meta

from msx_core.config.sections import AdapterPlaces, AdapterRank

MOST = 1 << 24
Count = Annotated[int, Meta(ge=1, le=MOST)]


class SizingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`context` and `dtype`: None for those of the model. `folder` has the `config.json`; `draft` that of a small model
    for drafts. `adapters`: how many are on the device at once, each of `adapter_rank`."""

    folder: str
    npu: str
    parallel: str = ""
    texts: Count = 1
    context: Count | None = None
    dtype: str | None = None
    draft: str | None = None
    adapters: AdapterPlaces | None = None
    adapter_rank: AdapterRank = 64


class RankSizing(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one rank. `draft`: all of a small model for drafts, cache included; `graphs`: where it is known;
    `reserve`: what `cacheFraction` leaves free beside the cache."""

    rank: int
    layers: int
    weights: int
    cache: int
    adapters: int
    draft: int
    activations: int
    graphs: int
    memory: int
    reserve: int

    @property
    def held(self) -> int:
        """As long as the model is loaded."""
        return self.weights + self.cache + self.adapters + self.draft

    @property
    def used(self) -> int:
        return self.held + self.activations + self.graphs

    @property
    def free(self) -> int:
        """Bytes that are left; below 0 where it does not fit."""
        return self.memory - self.held - max(self.activations + self.graphs, self.reserve)


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """Time of a step by the roofline: the longer of both. `exchange`: the bytes of all-reduces; None where no bandwidth
    is known."""

    memory: float
    compute: float
    exchange: float | None = None

    @property
    def seconds(self) -> float:
        return max(self.memory, self.compute)

    @property
    def bound(self) -> str:
        return "memory" if self.memory >= self.compute else "compute"


class Sizing(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. `decode` is None where the device's speed is not known; `keys` of model-config.yaml serve it as
    it was asked about; `remedies` are keys and the values with which it would fit, and empty where it fits; `refusal`:
    why it would not be loaded at all."""

    model_type: str
    parameters: int
    dtype: str
    npu: str
    texts: int
    context: int
    stages: int
    shards: int
    ranks: list[RankSizing]
    host: int
    keys: list[str]
    notes: list[str]
    remedies: list[str]
    decode: StepTime | None = None
    prefill: StepTime | None = None
    text_rate: float | None = None
    sum_rate: float | None = None
    refusal: str | None = None

    @property
    def fits(self) -> bool:
        return self.refusal is None and all(rank.free >= 0 for rank in self.ranks)


class SizingRefusal(msgspec.Struct, frozen=True):
    """Why there is no answer, in one sentence."""

    error: str
