"""Gated delta nets: layers that keep a state of fixed size for each text, in place of keys and values of its tokens
(Yang et al. 2024, "Gated Delta Networks")."""

from collections.abc import Iterator

import msgspec

Shape = tuple[int, ...]


DELTA_KEYS = frozenset(
    {
        "full_attention_interval", "linear_conv_kernel_dim", "linear_key_head_dim", "linear_num_key_heads",
        "linear_num_value_heads", "linear_value_head_dim",
    }
)  # fmt: skip
"""Keys of `config.json` about them."""


class DeltaConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of the nets, and the layers that have one in place of attention."""

    key_heads: int
    value_heads: int
    """A multiple of `key_heads`: neighbours have the same queries and keys."""
    key: int
    """Numbers of a head of queries and of keys."""
    value: int
    """Numbers of a head of values."""
    kernel: int
    """Tokens that the convolution sees, its own included."""
    layers: tuple[bool, ...]
    by_heads: bool = False
    """The files have one tensor for queries, keys, values and gates, and one for both rates, each head by head; else
    one for queries, keys and values."""
    drafts: int = 0
    """A step may have drafted tokens, which may be wrong: so many states more for each slot."""

    @property
    def queries(self) -> int:
        return self.key_heads * self.key

    @property
    def values(self) -> int:
        return self.value_heads * self.value

    @property
    def group(self) -> int:
        """Heads of values for each head of keys."""
        return self.value_heads // self.key_heads

    @property
    def channels(self) -> int:
        """Numbers of a token that go through the convolution."""
        return 2 * self.queries + self.values

    @property
    def state(self) -> int:
        """Numbers of a text's state in one layer."""
        return (self.kernel - 1) * self.channels + self.value_heads * self.key * self.value

    @property
    def kept(self) -> int:
        """Numbers of the states that a slot has: the last one, one of its beginning, and those of drafted tokens."""
        return (2 + self.drafts) * self.state

    def divided(self, shards: int) -> "DeltaConfig":
        """The heads of one rank."""
        heads = {"key_heads": self.key_heads // shards, "value_heads": self.value_heads // shards}
        return msgspec.structs.replace(self, **heads)

    def shapes(self, hidden: int) -> Iterator[tuple[str, Shape]]:
        """The engine's tensors of a layer."""
        yield "in_proj_q.weight", (self.queries, hidden)
        yield "in_proj_k.weight", (self.queries, hidden)
        yield "in_proj_v.weight", (self.values, hidden)
        yield "in_proj_z.weight", (self.values, hidden)
        yield "in_proj_b.weight", (self.value_heads, hidden)
        yield "in_proj_a.weight", (self.value_heads, hidden)
        yield "conv1d.weight", (self.channels, 1, self.kernel)
        yield "A_log", (self.value_heads,)
        yield "dt_bias", (self.value_heads,)
        yield "norm.weight", (self.value,)
        yield "out_proj.weight", (hidden, self.values)

    def head_parts(self) -> Iterator[tuple[str, str, int, int, int]]:
        """The engine's linear layers that are parts of each head of a file's: name, name in the file, rows of a head
        there, the first one of the part, and how many it has."""
        if not self.by_heads:
            return
        values = self.group * self.value
        first, whole = 0, 2 * self.key + 2 * values
        for name, size in {"q": self.key, "k": self.key, "v": values, "z": values}.items():
            yield f"in_proj_{name}", "in_proj_qkvz", whole, first, size
            first += size
        yield "in_proj_b", "in_proj_ba", 2 * self.group, 0, self.group
        yield "in_proj_a", "in_proj_ba", 2 * self.group, self.group, self.group
