"""Mixtures of experts: the keys of `config.json` about them, what a network is built from, and their tensors."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from msx_llm.models.key_types import Count, Size
from msx_llm.models.members import FILE
from msx_sdk.errors import HandlerLoadError

Shape = tuple[int, ...]


class ExpertKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Some families read each of them."""

    num_experts: Count | None = None
    num_local_experts: Count | None = None
    """The same of other versions of transformers."""
    num_experts_per_tok: Count | None = None
    moe_intermediate_size: Count | None = None
    shared_expert_intermediate_size: Count | None = None
    norm_topk_prob: bool | None = None
    decoder_sparse_step: Size = 1
    mlp_only_layers: list[int] | None = None
    n_routed_experts: Count | None = None
    n_shared_experts: Count | None = None
    first_k_dense_replace: Count | None = None
    moe_layer_freq: Size = 1
    n_group: Count | None = None
    topk_group: Count | None = None
    topk_method: str | None = None
    routed_scaling_factor: float | None = None
    moe_k: Size = 6
    moe_num_experts: Size = 64
    moe_num_shared_experts: Count = 2
    moe_layer_start_index: Count = 1
    moe_layer_end_index: Annotated[int, Meta(ge=-1)] = -1
    moe_layer_interval: Size = 1
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0


EXPERT_KEYS = frozenset(ExpertKeys.__struct_fields__)


class ExpertsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The experts of those layers that have some; the other layers have one MLP."""

    count: int
    chosen: int
    """How many of them each token takes."""
    inner: int
    """The intermediate size of one."""
    layers: tuple[bool, ...]
    """Whether each layer has experts."""
    normed: bool = False
    """The weights of the chosen ones add up to 1."""
    shared: int = 0
    """The intermediate size of the MLP beside them that every token takes; 0: there is none."""
    shared_name: str = "shared_expert"
    gated: bool = False
    """The shared MLP has a gate."""
    sigmoid: bool = False
    """Scores are sigmoids with a bias for the choice; else a softmax."""
    corrected: bool = False
    """A softmax has a bias for the choice, too."""
    names: tuple[tuple[str, str], ...] = ()
    """Parts of a layer's names here, and what the files have in their place."""
    beside: bool = False
    """They stand beside the layer's MLP, with norms of their own."""
    activation: str = "silu"
    """The activation of their gates: silu or gelu_tanh."""
    groups: int = 1
    chosen_groups: int = 1
    """A token's experts are of that many groups."""
    factor: float = 1.0
    """The factor of the experts' weights."""
    clamp: tuple[float, float] | None = None
    """The factor in the gate's sigmoid, and the limit of gate and up. Such experts lie in one tensor for all, gate and
    up in turns, and they and their router have biases."""
    whole: bool = False
    """Each rank has some of them whole; else a part of each."""
    packed: bool = False
    """Whether those tensors have numbers of 4 bits in the files: MXFP4."""

    def shapes(self, hidden: int, named: int | None = None) -> Iterator[tuple[str, Shape]]:
        """The tensors of one layer, behind `mlp.`; with those of the first `named` experts alone, else of all."""
        if self.clamp is not None:
            yield from self._clamped_shapes(hidden)
            return
        yield "gate.weight", (self.count, hidden)
        if self.sigmoid or self.corrected:
            yield "gate.e_score_correction_bias", (1, self.count) if self.corrected else (self.count,)
        for expert in range(self.count if named is None else named):
            yield from gated_shapes(f"experts.{expert}", hidden, self.inner)
        if self.shared:
            yield from gated_shapes(self.shared_name, hidden, self.shared)
        if self.gated:
            yield "shared_expert_gate.weight", (1, hidden)
        if self.beside:
            yield from self._beside_shapes(hidden)

    def _beside_shapes(self, hidden: int) -> Iterator[tuple[str, Shape]]:
        yield "gate.scale", (hidden,)
        yield "gate.per_expert_scale", (self.count,)
        for norm in ("dense_norm", "before_norm", "after_norm"):
            yield f"{norm}.weight", (hidden,)

    def _clamped_shapes(self, hidden: int) -> Iterator[tuple[str, Shape]]:
        yield "router.weight", (self.count, hidden)
        yield "router.bias", (self.count,)
        yield "experts.gate_up_proj", (self.count, hidden, 2 * self.inner)
        yield "experts.gate_up_proj_bias", (self.count, 2 * self.inner)
        yield "experts.down_proj", (self.count, self.inner, hidden)
        yield "experts.down_proj_bias", (self.count, hidden)


def gated_shapes(name: str, hidden: int, inner: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.gate_proj.weight", (inner, hidden)
    yield f"{name}.up_proj.weight", (inner, hidden)
    yield f"{name}.down_proj.weight", (hidden, inner)


def spread_experts(keys: ExpertKeys, layers: int, defaults: dict[str, int]) -> ExpertsConfig:
    """Experts in every `decoder_sparse_step`-th layer but those of `mlp_only_layers`, with the gated shared expert that
    the key names. Raises HandlerLoadError."""
    sizes = {name: getattr(keys, name) or default for name, default in defaults.items()}
    if not keys.num_experts and keys.num_local_experts:
        sizes["num_experts"] = keys.num_local_experts
    count, chosen = sizes["num_experts"], sizes["num_experts_per_tok"]
    check_chosen(count, chosen)
    plain = frozenset(keys.mlp_only_layers or ())
    shared = sizes.get("shared_expert_intermediate_size", 0)
    return ExpertsConfig(
        count=count,
        chosen=chosen,
        inner=sizes["moe_intermediate_size"],
        layers=tuple(n not in plain and (n + 1) % keys.decoder_sparse_step == 0 for n in range(layers)),
        normed=bool(keys.norm_topk_prob),
        shared=shared,
        gated=shared > 0,
    )


def check_chosen(count: int, chosen: int) -> None:
    if chosen > count:
        raise HandlerLoadError(f"{FILE}, num_experts_per_tok: {chosen} is more than there are experts: {count}")
    if chosen < 1:
        raise HandlerLoadError(f"{FILE}, num_experts_per_tok: {chosen} is below 1: each token needs an expert")


def check_groups(count: int, chosen: int, groups: tuple[int, int]) -> None:
    """groups: how many, and how many of them a token takes. Raises HandlerLoadError."""
    check_chosen(count, chosen)
    whole, taken = groups
    if count % whole or count // whole < 2:
        raise HandlerLoadError(f"{FILE}, n_group: {whole} does not divide {count} experts into groups of two or more")
    if not taken <= whole or taken * (count // whole) < chosen:
        raise HandlerLoadError(f"{FILE}, topk_group: {taken} of {whole} groups do not have {chosen} experts")


def read_experts(
    weights: Any, name: str, shape: Shape, outputs: tuple[str, ...], own: tuple[slice, slice], first: int = 0
) -> Any:
    """The tensors `outputs` of experts side by side, from the `first` on, of `shape`: [experts, in, out]; `own`: the
    rank's part of the out and of the in of each."""
    made = np.empty(shape, np.float32)
    for expert in range(shape[0]):
        parts = [weights.read(f"{name}.{first + expert}.{it}.weight", *own) for it in outputs]
        made[expert] = np.concatenate(parts).T
    return made
