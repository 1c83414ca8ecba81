"""Mixtures of experts: which experts, their rows, and the way back."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.host import Array, Floats, array, floats, poisoned, tensor
from tests.emulated_ascend.operator import HALF, Operator

DTYPES = (*HALF, ms.float32)


class MoeGatingTopKSoftmax(Operator):
    def compute(self, x: Any, finished: Any = None, k: int = 1) -> tuple[Tensor, Tensor, Tensor]:
        """-> weights of all experts' softmax and numbers of experts [T, k], the largest first, and one nobody reads"""
        self.tensor("x", x, DTYPES, 2)
        self.absent(finished=finished)
        self.require(0 < k <= x.shape[1], "k", k, f"it must be 1 to {x.shape[1]} experts")
        parts = np.exp(floats(x) - floats(x).max(-1, keepdims=True))
        parts /= parts.sum(-1, keepdims=True)
        best = largest(parts, k)
        ids = tensor(best, ms.int32)
        return tensor(np.take_along_axis(parts, best, 1), x.dtype), ids, poisoned(tuple(best.shape), ms.int32)


class FusedAddTopKDiv(Operator):
    def compute(
        self,
        x: Any,
        add_num: Any,
        group_num: int,
        group_topk: int,
        n: int,
        k: int,
        activate_type: int = 0,
        is_norm: bool = True,
        scale: float = 2.5,
        mapping_num: Any = None,
        mapping_table: Any = None,
        enable_expert_mapping: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """-> weights float32 and numbers of experts [T, k], of the groups whose best `n` experts have the largest sums.
        `add_num` has a part in the choice, and none in the weights."""
        self._inputs(x, add_num)
        self.require(activate_type == 0, "activate_type", activate_type, "it must be 0, sigmoid")
        self.absent(mapping_num=mapping_num, mapping_table=mapping_table)
        self.require(not enable_expert_mapping, "enable_expert_mapping", enable_expert_mapping, "it must be False")
        size = self._groups(x.shape[1], group_num, group_topk, n, k)
        scores = 1 / (1 + np.exp(-floats(x)))
        choice = scores + floats(add_num)
        sums = np.sort(choice.reshape(len(scores), group_num, size), -1)[..., size - n :].sum(-1)
        taken = np.zeros_like(sums, bool)
        np.put_along_axis(taken, largest(sums, group_topk), True, 1)
        best = largest(np.where(np.repeat(taken, size, 1), choice, -np.inf).astype(np.float32), k)
        weights = np.take_along_axis(scores, best, 1)
        if is_norm:
            weights = weights / weights.sum(-1, keepdims=True)
        return tensor(weights * np.float32(scale), ms.float32), tensor(best, ms.int32)

    def _inputs(self, x: Any, add_num: Any) -> None:
        self.tensor("x", x, DTYPES, 2)
        self.tensor("add_num", add_num, DTYPES, 1)
        self.same_dtype("add_num", add_num, "x", x)
        self.shape("add_num", add_num, x.shape[1])

    def _groups(self, experts: int, group_num: int, group_topk: int, n: int, k: int) -> int:
        divides = group_num > 0 and experts % group_num == 0
        self.require(divides, "group_num", group_num, f"the {experts} experts must divide by it")
        size = experts // group_num
        self.require(0 < group_topk <= group_num, "group_topk", group_topk, f"it must be 1 to {group_num} groups")
        self.require(0 < n <= size, "n", n, f"it must be 1 to the {size} experts of a group")
        self.require(0 < k <= group_topk * size, "k", k, f"it must be 1 to {group_topk * size} experts of the groups")
        return size


def largest(values: Floats, count: int) -> Array:
    """Indices of the largest values of each row; of equal ones the first."""
    return np.argsort(-values, axis=-1, kind="stable")[:, :count]


class MoeInitRoutingV2(Operator):
    def compute(
        self,
        x: Any,
        expert_idx: Any,
        active_num: int,
        expert_capacity: int,
        expert_num: int,
        drop_pad_mode: int,
        expert_tokens_count_or_cumsum_flag: int,
        expert_tokens_before_capacity_flag: bool,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """-> rows of x by expert [T*k, H], where the row of each token and choice is [T*k], rows of each expert, and
        one nobody reads"""
        for name, came, needed in (
            ("active_num", active_num, 0),
            ("expert_capacity", expert_capacity, 0),
            ("drop_pad_mode", drop_pad_mode, 0),
            ("expert_tokens_count_or_cumsum_flag", expert_tokens_count_or_cumsum_flag, 2),
        ):
            self.require(came == needed, name, came, f"it must be {needed}: no token is dropped, rows are counted")
        chosen = self._chosen(x, expert_idx, expert_num)
        order = np.argsort(chosen.reshape(-1), kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        rows = tensor(array(x)[order // chosen.shape[1]], x.dtype)
        counts = np.bincount(chosen.reshape(-1), minlength=expert_num)
        return rows, tensor(places, ms.int32), tensor(counts, ms.int32), poisoned((expert_num,), ms.int32)

    def _chosen(self, x: Any, expert_idx: Any, expert_num: int) -> Array:
        self.tensor("x", x, DTYPES, 2)
        self.tensor("expert_idx", expert_idx, (ms.int32,), 2)
        tokens, ids = x.shape[0], array(expert_idx)
        self.require(len(ids) == tokens, "expert_idx", expert_idx, f"it must have a row of each of {tokens} tokens")
        fits = not ids.size or (ids.min() >= 0 and ids.max() < expert_num)
        self.require(fits, "expert_idx", ids.tolist(), f"experts must be 0 to {expert_num - 1}")
        return ids


class MoeTokenUnpermute(Operator):
    def compute(
        self,
        permuted_tokens: Any,
        sorted_indices: Any,
        probs: Any = None,
        padded_mode: bool = False,
        restore_shape: Any = None,
    ) -> Tensor:
        """-> [T, H]: the sum of each token's rows times `probs` [T, k]"""
        self.require(not padded_mode, "padded_mode", padded_mode, "it must be False")
        self.absent(restore_shape=restore_shape)
        self.tensor("permuted_tokens", permuted_tokens, HALF, 2)
        self.tensor("probs", probs, HALF, 2)
        self.same_dtype("probs", probs, "permuted_tokens", permuted_tokens)
        self.tensor("sorted_indices", sorted_indices, (ms.int32,), 1)
        rows, count = permuted_tokens.shape[0], int(np.prod(probs.shape))
        self.require(count == rows, "probs", probs, f"it must have one of each of {rows} rows")
        self.shape("sorted_indices", sorted_indices, rows)
        places = array(sorted_indices)
        whole = np.array_equal(np.sort(places), np.arange(rows))
        self.require(whole, "sorted_indices", places.tolist(), f"it must have each of 0 to {rows - 1} once")
        weights = floats(probs)
        own = floats(permuted_tokens)[places].reshape(*weights.shape, -1)
        return tensor((own * weights[..., None]).sum(1), permuted_tokens.dtype)
