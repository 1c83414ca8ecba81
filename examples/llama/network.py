"""The Llama as it is trained: whole sequences, no cache. To serve it, `text_generation` has a network of its own.

Its parameters carry Hugging Face's names. Matrices are [in, out], the transpose of the file's: on CPU that is ten times
faster. In the shapes below B is sequences, P positions, D the size of a head.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops


@dataclass(frozen=True)
class LlamaConfig:
    """The keys of `config.json` that the network needs."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    max_position_embeddings: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    tie_word_embeddings: bool = True

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


def weight(*shape: int) -> Parameter:
    return Parameter(Tensor(np.zeros(shape, np.float32)), name="weight")


class Linear(nn.Cell):
    def __init__(self, size_in: int, size_out: int) -> None:
        super().__init__()
        self.weight = weight(size_in, size_out)
        self.matmul = ops.MatMul()

    def construct(self, x: Tensor) -> Tensor:
        return self.matmul(x, self.weight)


class Embedding(nn.Cell):
    """Also the head: its logits are products with the same rows."""

    def __init__(self, vocab: int, size: int) -> None:
        super().__init__()
        self.weight = weight(vocab, size)
        self.gather, self.matmul = ops.Gather(), ops.MatMul(transpose_b=True)

    def construct(self, tokens: Tensor) -> Tensor:
        return self.gather(self.weight, tokens, 0)

    def logits(self, x: Tensor) -> Tensor:
        return self.matmul(x, self.weight)


class RMSNorm(nn.Cell):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = Parameter(Tensor(np.ones(size, np.float32)), name="weight"), eps
        self.mean = ops.ReduceMean(keep_dims=True)

    def construct(self, x: Tensor) -> Tensor:
        return x * ops.rsqrt(self.mean(ops.square(x), -1) + self.eps) * self.weight


class MLP(nn.Cell):
    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = Linear(size, hidden), Linear(size, hidden), Linear(hidden, size)

    def construct(self, x: Tensor) -> Tensor:
        gate = self.gate_proj(x)
        return self.down_proj(gate * ops.sigmoid(gate) * self.up_proj(x))


class Attention(nn.Cell):
    """Grouped-query attention."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.heads, self.kv, self.size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.group, self.scale = self.heads // self.kv, 1 / math.sqrt(self.size)
        self.q_proj = Linear(config.hidden_size, self.heads * self.size)
        self.k_proj = Linear(config.hidden_size, self.kv * self.size)
        self.v_proj = Linear(config.hidden_size, self.kv * self.size)
        self.o_proj = Linear(self.heads * self.size, config.hidden_size)
        self.halves, self.softmax = ops.Split(-1, 2), ops.Softmax(-1)
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()

    def construct(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, batch: int) -> Tensor:
        """x [B*P, hidden], cos and sin [P, D], mask [P, P] additive"""
        length = x.shape[0] // batch
        q = self.rotate(self.heads_first(self.q_proj(x), batch, length, self.heads), cos, sin) * self.scale
        k = self.rotate(self.heads_first(self.k_proj(x), batch, length, self.kv), cos, sin)
        v = self.heads_first(self.v_proj(x), batch, length, self.kv)
        grouped, per_kv = (batch * self.kv, self.group * length, -1), (batch * self.kv, length, self.size)
        scores = self.scores(q.reshape(grouped), k.reshape(per_kv)).reshape((batch, self.heads, length, length))
        mixed = self.mix(self.softmax(scores + mask).reshape(grouped), v.reshape(per_kv))
        mixed = mixed.reshape((batch, self.heads, length, self.size)).transpose((0, 2, 1, 3))
        return self.o_proj(mixed.reshape((batch * length, self.heads * self.size)))

    def heads_first(self, x: Tensor, batch: int, length: int, heads: int) -> Tensor:
        return x.reshape((batch, length, heads, self.size)).transpose((0, 2, 1, 3))  # [B, heads, P, D]

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first, second = self.halves(x)
        return x * cos + ops.concat((-second, first), -1) * sin


class Layer(nn.Cell):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config.hidden_size, config.intermediate_size)

    def construct(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, batch: int) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask, batch)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Cell):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.CellList([Layer(config) for _ in range(config.num_hidden_layers)])
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Cell):
    """tokens [B, P] -> logits [B*P, vocab]"""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.model = Decoder(config)
        self.cos, self.sin = map(Tensor, rotary_table(config))
        reach = np.tril(np.ones((config.max_position_embeddings,) * 2, bool))
        self.causal = Tensor(np.where(reach, 0, -1e9).astype(np.float32))

    def construct(self, tokens: Tensor) -> Tensor:
        batch, length = tokens.shape
        cos, sin, mask = self.cos[:length], self.sin[:length], self.causal[:length, :length]
        x = self.model.embed_tokens(tokens.reshape((-1,)))
        for layer in self.model.layers:
            x = layer(x, cos, sin, mask, batch)
        return self.model.embed_tokens.logits(self.model.norm(x))


def rotary_table(config: LlamaConfig) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
    """cos and sin [positions, D], Hugging Face's layout: the halves of a head turn together."""
    inverse = config.rope_theta ** -(np.arange(0, config.head_dim, 2) / config.head_dim)
    angles = np.tile(np.outer(np.arange(config.max_position_embeddings), inverse), 2)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
