"""Writes the keys and values of a step into their blocks."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.host import Array, array, memory, poisoned
from tests.emulated_ascend.operator import CHIP, HALF, Operator


class ReshapeAndCache(Operator):
    def compute(
        self,
        key: Any,
        value: Any = None,
        key_cache: Any = None,
        value_cache: Any = None,
        slot_mapping: Any = None,
    ) -> Tensor:
        """-> something of key's shape that only orders what comes after"""
        self.require((value is None) == (value_cache is None), "value", value, "value and value_cache come together")
        self._pair("key", key, "key_cache", key_cache)
        if value is not None:
            self._pair("value", value, "value_cache", value_cache)
            self._alike(key, value, key_cache, value_cache)
        places = self._places(key, key_cache, slot_mapping)
        self._write(key, key_cache, places)
        if value is not None:
            self._write(value, value_cache, places)
        return poisoned(tuple(key.shape), key.dtype)

    def _pair(self, name: str, new: Any, cache_name: str, cache: Any) -> None:
        self.tensor(name, new, (*HALF, ms.int8), 2, 3)
        if len(new.shape) == 3:
            self.require(new.shape[0] == 1, name, new, "it must be [T, K*D] or [1, T, K*D]")
        self.tensor(cache_name, cache, (*HALF, ms.int8), 3 if CHIP.is_310p else 4)
        self.same_dtype(cache_name, cache, name, new)
        width = int(np.prod(cache.shape[2:]))
        self.require(new.shape[-1] == width, name, new, f"its width must be that of a slot of {cache_name}, {width}")
        self.require(cache.is_contiguous(), cache_name, cache, "it is written in place: it must be contiguous")

    def _alike(self, key: Any, value: Any, key_cache: Any, value_cache: Any) -> None:
        self.require(_tokens(value) == _tokens(key), "value", value, f"it must have key's {_tokens(key)} tokens")
        slots, own = tuple(key_cache.shape[:2]), tuple(value_cache.shape[:2])
        self.require(own == slots, "value_cache", value_cache, f"it must have key_cache's {list(slots)} blocks")
        apart = key_cache.data_ptr() != value_cache.data_ptr()
        self.require(apart, "value_cache", value_cache, "it must not be key_cache, which it would overwrite")

    def _places(self, key: Any, cache: Any, slot_mapping: Any) -> Array:
        self.tensor("slot_mapping", slot_mapping, (ms.int32,), 1)
        tokens, slots = _tokens(key), cache.shape[0] * cache.shape[1]
        self.shape("slot_mapping", slot_mapping, tokens)
        self.require(tokens <= slots, "key", key, f"a cache of {slots} slots does not hold {tokens} tokens")
        places = array(slot_mapping)
        used = places[places >= 0]
        fits = not len(places) or (places.min() >= -1 and places.max() < slots)
        self.require(fits, "slot_mapping", places.tolist(), f"slots must be -1 (nowhere) or 0 to {slots - 1}")
        self.require(len(np.unique(used)) == len(used), "slot_mapping", places.tolist(), "two tokens have one slot")
        return places

    @staticmethod
    def _write(new: Any, cache: Any, places: Array) -> None:
        width = new.shape[-1]
        slots, kept = memory(cache).reshape(-1, width), places >= 0
        slots[places[kept]] = array(new).reshape(-1, width)[kept]


def _tokens(new: Any) -> int:
    return int(np.prod(new.shape[:-1]))
