"""A gated delta net over slots: the convolution, the delta rule and the norm, with the states of all texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill, load_shards
from msx_core.mindspore.weights import Weights, part
from msx_llm.kernels.cpu.cells import FEW, HeadNorm, SiluGate
from msx_llm.kernels.cpu.delta import PromptRule, TokenRule
from msx_llm.kernels.cpu.drafted_delta import DraftedRule
from msx_llm.kernels.cpu.slots import empty_cache
from msx_llm.kernels.cpu.states import StateLayout
from msx_llm.models.delta import DeltaConfig
from msx_sdk.mindspore.parallel import Parallel

EPS = 1e-6
"""Epsilon in the lengths of queries and keys, whatever `rms_norm_eps` says."""


class ShortConvolution(nn.Cell):  # type: ignore[misc]
    """Each number of a token is mixed with those of the tokens before it, and goes through a silu. `drafted`: steps of
    several texts may have several tokens of one."""

    def __init__(self, channels: int, kernel: int, drafted: bool = False) -> None:
        super().__init__()
        self.kernel, self.channels, self.drafted = kernel, channels, drafted
        self.weight = Parameter(initializer("zeros", (kernel, channels), ms.float32), name="weight")
        self.taps, self.earlier = ops.Split(0, kernel), ops.Split(-1, kernel - 1)
        self.rows, self.columns, self.gather, self.tile = ops.Concat(0), ops.Concat(-1), ops.Gather(), ops.Tile()
        self.sigmoid = ops.Sigmoid()

    def construct(self, x: Any, before: Any, tail: Any) -> Any:
        """x [T, channels] of as many texts as `before` has rows [B, (kernel - 1) * channels], tail: see `StateLayout`
        -> [T, channels], what the next step's tokens have before them"""
        tokens = x.shape[0]
        if tokens == before.shape[0] and tokens > 1 and self.drafted:
            seen = self.taps(self.gather(self.rows((before.reshape((-1, self.channels)), x)), tail, 0))
            after = self.columns(seen[1:])
        elif tokens == before.shape[0]:
            seen = (*self.earlier(before), x)
            after = self.columns((before[:, self.channels :], x))
        else:
            joined = self.rows((before.reshape((self.kernel - 1, self.channels)), x))
            seen = ()
            for place in range(self.kernel):
                seen = (*seen, joined[place : place + tokens])
            after = self.gather(joined, tail, 0).reshape((1, -1))
        mixed = self.mixed(seen, tokens)
        return mixed * self.sigmoid(mixed), after

    def mixed(self, seen: Any, tokens: int) -> Any:
        weights = self.taps(self.weight)
        mixed: Any = 0.0
        for place in range(self.kernel):
            weight = weights[place]
            if tokens > FEW:
                weight = self.tile(weight, (tokens, 1))
            mixed = mixed + seen[place] * weight
        return mixed


class HeadLength(nn.Cell):  # type: ignore[misc]
    """x [T, heads * size] -> [T, heads, size]: each head gets the length `length`."""

    def __init__(self, size: int, length: float) -> None:
        super().__init__()
        self.size, self.length = size, length
        self.sum, self.square, self.rsqrt = ops.ReduceSum(keep_dims=True), ops.Square(), ops.Rsqrt()
        self.tile = ops.Tile()

    def construct(self, x: Any) -> Any:
        x = x.reshape((x.shape[0], -1, self.size))
        scale = self.rsqrt(self.sum(self.square(x), -1) + EPS) * self.length
        if x.shape[0] > FEW:
            scale = self.tile(scale, (1, 1, self.size))
        return x * scale


class SlotDeltaState(nn.Cell):  # type: ignore[misc]
    loads_inner = True

    def __init__(self, delta: DeltaConfig, parallel: Parallel, eps: float) -> None:
        super().__init__()
        own = delta.divided(parallel.tp_size)
        self.own, self.group, self.whole, self.parallel = own, own.group, delta, parallel
        self.heads, self.value = own.value_heads, own.value
        self.drafted = own.drafts > 0
        self.convolution = ShortConvolution(own.channels, own.kernel, self.drafted)
        self.query_length, self.key_length = HeadLength(own.key, own.key**-0.5), HeadLength(own.key, 1.0)
        self.norm = HeadNorm(own.value, eps, ms.float32)
        self.growth = Parameter(initializer("zeros", (own.value_heads,), ms.float32), name="growth")
        self.shift = Parameter(initializer("zeros", (own.value_heads,), ms.float32), name="shift")
        self.token_rule, self.prompt_rule = TokenRule(own.key, own.value), PromptRule(own.key, own.value)
        self.scatter, self.gather, self.gate = ops.ScatterUpdate(), ops.EmbeddingLookup(), SiluGate()
        self.join, self.exp, self.log, self.tile = ops.Concat(-1), ops.Exp(), ops.Log1p(), ops.Tile()
        self.sigmoid, self.relu, self.abs, self.minimum = ops.Sigmoid(), ops.ReLU(), ops.Abs(), ops.Minimum()

    def prepare(self, layout: StateLayout, name: str) -> None:
        """`name` differs for each layer: graphs know parameters by their names."""
        own = self.own
        sizes = {"tail": (own.kernel - 1) * own.channels, "memory": own.value_heads * own.key * own.value}
        self.tail, self.memory = (empty_cache((layout.size, size), f"{name}.{it}") for it, size in sizes.items())
        self.caches = [self.tail, self.memory]
        if self.drafted:
            self.sizes = tuple(size for size in layout.sizes if size > 1)
            self.drafted_rules = nn.CellList([DraftedRule(own.key, own.value, size) for size in self.sizes])

    def construct(self, qkv: Any, z: Any, b: Any, a: Any, step: Any) -> Any:
        """q, k, v [T, …] before the convolution, z [T, values], b, a [T, heads] of B texts -> [T, values]"""
        before, after, texts, tail = step[1]
        x, last = self.convolution(self.join(qkv), self.gather(self.tail, before, 0), tail)
        q, k, v = self.parts(x)
        decay, rate = self.rates(b, a, texts)
        state = self.gather(self.memory, before, 0)
        if state.shape[0] == x.shape[0] and x.shape[0] > 1 and self.drafted:
            made, state = self.several(q, k, v, decay, rate, state, texts)
        elif state.shape[0] == x.shape[0]:
            made, state = self.token_rule(q, k, v, decay, rate, state)
        else:
            made, state = self.prompt_rule(q, k, v, decay, rate, state)
        made = ops.depend(made, self.scatter(self.tail, after, last))
        made = ops.depend(made, self.scatter(self.memory, after, state))
        return self.gate(z, self.norm(made.reshape((made.shape[0], -1))).reshape((made.shape[0], -1)))

    def several(self, *inputs: Any) -> Any:
        """Take the `DraftedRule` of as many tokens."""
        found: Any = None
        for number, size in enumerate(self.sizes):
            if size == inputs[0].shape[0]:
                found = self.drafted_rules[number](*inputs)
        return found

    def parts(self, x: Any) -> Any:
        """Queries and keys have the length 1, and queries the factor of scores; each has the heads of values."""
        queries, tokens = self.own.queries, x.shape[0]
        q, k = self.query_length(x[:, :queries]), self.key_length(x[:, queries : 2 * queries])
        v = x[:, 2 * queries :].reshape((tokens, self.heads, self.value))
        return self.spread(q), self.spread(k), v

    def spread(self, x: Any) -> Any:
        if self.group == 1:
            return x
        tokens, _, size = x.shape
        return self.tile(ops.expand_dims(x, 2), (1, 1, self.group, 1)).reshape((tokens, self.heads, size))

    def rates(self, b: Any, a: Any, texts: Any) -> Any:
        """The logarithm of what is kept of a state, and the share of what is new [T, heads]; both 0 for padding."""
        valid = self.minimum(texts, 1) if self.drafted else texts
        valid = ops.expand_dims(valid.astype(ms.float32), 1)
        a = a + self.shift
        soft = self.relu(a) + self.log(self.exp(-self.abs(a)))
        return soft * self.growth * valid, self.sigmoid(b) * valid

    def copy(self, source: Any, target: Any) -> None:
        """Copies rows to rows; outside of graphs."""
        for cache in self.caches:
            self.scatter(cache, target, self.gather(cache, source, 0))

    def load_shard(self, weights: Weights, name: str) -> None:
        place = name.rpartition(".")[0]
        kernel = [weights.read(f"{place}.conv1d.weight", rows) for rows in self.channels()]
        fill(self.convolution.weight, np.concatenate(kernel).astype(np.float32)[:, 0].T)
        heads = part(self.whole.value_heads, self.parallel.tp_size, self.parallel.tp_rank)
        fill(self.growth, -np.exp(weights.read(f"{place}.A_log", heads).astype(np.float32)))
        fill(self.shift, weights.read(f"{place}.dt_bias", heads))
        load_shards(self.norm, weights, f"{place}.norm")

    def channels(self) -> Iterator[slice]:
        """The rank's channels of queries, keys and values among those of the file."""
        first = 0
        for size in (self.whole.queries, self.whole.queries, self.whole.values):
            own = part(size, self.parallel.tp_size, self.parallel.tp_rank)
            yield slice(first + own.start, first + own.stop)
            first += size
