"""`config.json` of a file's metadata and tensors."""

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from msx_archiver.gguf.metadata import Metadata
from msx_core.gguf.errors import GgufError
from msx_core.gguf.header import GgufHeader, TensorInfo
from msx_core.gguf.names import ANGLES, hub_name, linear

ARCHITECTURE, TOKENS = "general.architecture", "tokenizer.ggml.tokens"
EMBEDDING, HEAD, QUERY_BIAS = "token_embd.weight", "output.weight", "blk.0.attn_q.bias"
PAIRED = {"llama"}
"""Architectures whose queries and keys the converter puts in the order in which neighbours turn together."""
ARCHITECTURES = ("llama", "qwen2", "qwen3")
READ = {
    "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.layer_norm_rms_epsilon",
    "attention.value_length", "block_count", "context_length", "embedding_length", "feed_forward_length",
    "rope.dimension_count", "rope.freq_base", "rope.scaling.attn_factor", "rope.scaling.factor",
    "rope.scaling.original_context_length", "rope.scaling.type", "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow", "vocab_size",
}  # fmt: skip
IGNORED = {"rope.dimension_sections", "rope.scaling.finetuned", "tensor_data_layout"}
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("attention.scale", "embedding_scale", "logit_scale", "residual_scale"), (1, 0)),
    **dict.fromkeys(("attn_logit_softcapping", "expert_count", "expert_used_count", "final_logit_softcapping"), (0,)),
    **dict.fromkeys(("attention.sliding_window", "pooling_type"), (0,)),
    **dict.fromkeys(("attention.clamp_kqv", "attention.temperature_scale", "rope.scaling.yarn_log_multiplier"), (0,)),
    "rope.scaling.yarn_attn_factor": (1,),
    "rope.scaling.yarn_ext_factor": (-1, 1),
    "attention.causal": (True,),
}
"""Keys that change what a model computes and are not read, with the values that do not."""
MOST_ANGLES = 4096
_REMEDY = "take the model in safetensors, whose families are in docs/llm-engine.md"


def config_of(path: Path, header: GgufHeader) -> dict[str, Any]:
    """Raises GgufError for what the engine cannot serve."""
    metadata = Metadata(header.metadata)
    kind = metadata.text(ARCHITECTURE)
    if kind not in ARCHITECTURES:
        raise GgufError(
            f"the architecture {kind[:40]} is not read from GGUF; {', '.join(ARCHITECTURES)} are: {_REMEDY}"
        )
    own = _Own(metadata, kind)
    own.check()
    heads, head = own.heads
    return {
        "model_type": kind,
        "vocab_size": _vocabulary(header),
        "hidden_size": own.count("embedding_length"),
        "intermediate_size": own.count("feed_forward_length"),
        "num_hidden_layers": _layers(own, header.tensors),
        "num_attention_heads": heads,
        "num_key_value_heads": own.count("attention.head_count_kv", heads),
        "head_dim": head,
        "max_position_embeddings": own.count("context_length"),
        "rms_norm_eps": own.amount("attention.layer_norm_rms_epsilon"),
        "rope_theta": own.amount("rope.freq_base", 10_000.0),
        "tie_word_embeddings": HEAD not in header.tensors,
        "quantization_config": _types(kind, header.tensors),
        **({"attention_bias": QUERY_BIAS in header.tensors} if kind != "qwen2" else {}),
        **_scaling(own, path, header.tensors.get(ANGLES), head // 2),
    }


def unknown_keys(header: GgufHeader) -> list[str]:
    """Keys of the architecture that are neither read nor known to have no effect."""
    start = f"{header.metadata.get(ARCHITECTURE)}."
    names = (key.removeprefix(start) for key in header.metadata if key.startswith(start))
    return sorted(start + name for name in names if name not in READ | IGNORED | NEUTRAL.keys())


class _Own:
    """Keys of one architecture."""

    def __init__(self, metadata: Metadata, kind: str) -> None:
        self._metadata, self.kind = metadata, kind

    def check(self) -> None:
        for name, accepted in NEUTRAL.items():
            key = f"{self.kind}.{name}"
            if key in self._metadata and (value := self._metadata.plain(key)) not in accepted:
                raise GgufError(f"{key}: {str(value)[:40]} changes what a model computes, and is not read: {_REMEDY}")

    @property
    def heads(self) -> tuple[int, int]:
        """The number of heads, and the size of one."""
        heads, hidden = self.count("attention.head_count"), self.count("embedding_length")
        head = self.count("attention.key_length", max(hidden // heads, 1))
        for name in ("attention.value_length", "rope.dimension_count"):
            if (size := self.count(name, head)) != head:
                raise GgufError(f"{self.kind}.{name}: {size} is not the size of a head, {head}: {_REMEDY}")
        return heads, head

    def has(self, name: str) -> bool:
        return f"{self.kind}.{name}" in self._metadata

    def count(self, name: str, default: int | None = None) -> int:
        return self._metadata.count(f"{self.kind}.{name}", default)

    def amount(self, name: str, default: float | None = None) -> float:
        return self._metadata.amount(f"{self.kind}.{name}", default)

    def text(self, name: str, default: str) -> str:
        return self._metadata.text(f"{self.kind}.{name}", default)


def _vocabulary(header: GgufHeader) -> int:
    if (embedding := header.tensors.get(EMBEDDING)) is None or len(embedding.shape) != 2:
        raise GgufError(f"it has no tensor {EMBEDDING} with two axes: it is not a whole model")
    rows, tokens = embedding.shape[0], len(Metadata(header.metadata).list(TOKENS, str))
    if tokens > rows:
        raise GgufError(f"it has {tokens:,} tokens, and {EMBEDDING} {rows:,} rows")
    return rows


def _layers(own: _Own, tensors: Mapping[str, TensorInfo]) -> int:
    count = own.count("block_count")
    found = {layer[2] for name in tensors if (layer := hub_name(name).split(".", 3))[:2] == ["model", "layers"]}
    if count > len(found):
        raise GgufError(f"{own.kind}.block_count: {count:,} is more than its tensors' {len(found):,} layers")
    return count


def _types(kind: str, tensors: Mapping[str, TensorInfo]) -> dict[str, Any]:
    """The type of most linear layers, and those of others by layer."""
    types = dict(_linears(tensors))
    if not types:
        raise GgufError("it has no layers: it is not a whole model")
    [(most, _)] = Counter(types.values()).most_common(1)
    others = {layer: name for layer, name in sorted(types.items()) if name != most}
    return {"quant_method": "gguf", "type": most, "types": others, "rotary_pairs": kind in PAIRED}


def _linears(tensors: Mapping[str, TensorInfo]) -> Iterator[tuple[str, str]]:
    for name, tensor in tensors.items():
        if (layer := linear(hub_name(name))) is not None:
            yield layer, tensor.kind.name


def _scaling(own: _Own, path: Path, angles: TensorInfo | None, pairs: int) -> dict[str, Any]:
    """`rope_scaling`. Llama 3's are divisors of the angles in a tensor, which LongRoPE has, too."""
    kind = own.text("rope.scaling.type", "none")
    if angles is not None:
        if kind != "none":
            raise GgufError(f"rope.scaling.type: {kind[:40]} beside {ANGLES} is not read: {_REMEDY}")
        divisors, length = _divisors(path, angles, pairs), own.count("context_length")
        lists = {"short_factor": divisors, "long_factor": divisors}
        return {"rope_scaling": {"rope_type": "longrope", "original_max_position_embeddings": length, **lists}}
    if kind == "none":
        return {}
    if kind not in ("linear", "yarn"):
        raise GgufError(f"rope.scaling.type: {kind[:40]} is not read; linear and yarn are: {_REMEDY}")
    found: dict[str, Any] = {"rope_type": kind, "factor": own.amount("rope.scaling.factor")}
    if kind == "yarn":
        found["original_max_position_embeddings"] = own.count("rope.scaling.original_context_length")
        betas = {name: f"rope.scaling.yarn_{name}" for name in ("beta_fast", "beta_slow")}
        found |= {name: own.amount(key) for name, key in betas.items() if own.has(key)}
    if own.amount("rope.scaling.attn_factor", 1) != 1:
        raise GgufError(f"rope.scaling.attn_factor is not 1, and is not read: {_REMEDY}")
    return {"rope_scaling": found}


def _divisors(path: Path, angles: TensorInfo, pairs: int) -> list[float]:
    if angles.kind.name != "F32" or angles.shape != (pairs,) or pairs > MOST_ANGLES:
        raise GgufError(f"tensor {ANGLES} is not {pairs} numbers of F32, one for each pair of a head's")
    with path.open("rb") as file:
        file.seek(angles.start)
        found = struct.unpack(f"<{pairs}f", file.read(angles.size))
    if not all(isfinite(it) and it > 0 for it in found):
        raise GgufError(f"tensor {ANGLES} has numbers that are not above 0")
    return [*found]
