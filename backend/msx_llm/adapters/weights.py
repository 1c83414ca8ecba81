"""An adapter's matrices, by the engine's names of layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from msx_core.mindspore.weights import Weights
from msx_core.values import show
from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.files import check_unchanged, copy_of
from msx_llm.adapters.peft import WEIGHTS, PeftConfig, read_peft
from msx_llm.models.arrangement import layer_sources
from msx_llm.models.config import DecoderConfig
from msx_llm.models.weights import layer_shapes
from msx_sdk.errors import HandlerLoadError

PREFIX = "base_model.model."
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP = ("gate_proj", "up_proj", "down_proj")
WIDEST, HEADER = 8, 16 << 20
"""Bytes of a value, and of what a file has besides values."""

Pair = tuple[Any, Any]


def adaptable(config: DecoderConfig) -> frozenset[str]:
    """The engine's names of linear layers that may have adapters."""
    if config.latent is not None or config.delta is not None:
        return frozenset()
    return frozenset(ATTENTION if config.experts is not None else ATTENTION + MLP)


def read_pairs(adapter: Adapter, config: DecoderConfig) -> dict[str, Pair]:
    """A [rank, in] and B [out, rank], with the adapter's factor, by names such as `3.self_attn.q_proj`. Layers that
    files have in one tensor share its A. Raises HandlerLoadError where the adapter is not one of this model, or is not
    what it was when it was checked."""
    check_unchanged(adapter)
    peft = read_peft(adapter.name, Path(adapter.folder))
    with copy_of(adapter.name, Path(adapter.folder) / WEIGHTS, most_bytes(config, peft.rank)) as copy:
        pairs = _pairs(adapter.name, peft, copy, config, _Reader)
    check_unchanged(adapter)
    return pairs


def check_pairs(adapter: Adapter, config: DecoderConfig) -> None:
    """Raises what `read_pairs` would raise, and reads names and shapes alone."""
    folder = Path(adapter.folder)
    _pairs(adapter.name, read_peft(adapter.name, folder), folder / WEIGHTS, config, _Checker)


def most_bytes(config: DecoderConfig, rank: int) -> int:
    """Largest size of a file whose adapters change every layer that may have some."""
    names = adaptable(config)
    values = sum(
        sum(shape) * rank
        for layer in range(config.layers)
        for name, shape in layer_shapes(config, layer)
        if name.removesuffix(".weight").rpartition(".")[2] in names and len(shape) == 2
    )
    return values * WIDEST + HEADER


def _pairs(name: str, peft: PeftConfig, path: Path, config: DecoderConfig, reader: type[_Reader]) -> dict[str, Pair]:
    called = f"adapter {name}: {WEIGHTS}"
    if not path.is_file():
        raise HandlerLoadError(f"{called} is missing")
    try:
        with Weights(path, called) as weights:
            return reader(name, weights, config, peft.rank, peft.scale).pairs()
    except OSError as error:
        raise HandlerLoadError(f"{called} cannot be read: {error.strerror}") from None


class _Reader:
    def __init__(self, name: str, weights: Weights, config: DecoderConfig, rank: int, scale: float) -> None:
        self._name, self._weights, self._config, self._rank, self._scale = name, weights, config, rank, scale
        self._left = set(weights.names)

    def pairs(self) -> dict[str, Pair]:
        found: dict[str, Pair] = {}
        for layer in range(self._config.layers):
            found |= self._layer(layer)
        if self._left:
            raise self._refused(f"{show(min(self._left))} is of no layer that may have adapters in this model")
        return found

    def _layer(self, layer: int) -> dict[str, Pair]:
        sources = dict(layer_sources(self._config.of_layer(layer), layer_shapes(self._config, layer)))
        rows: dict[str, int] = {}
        for source in sources.values():
            rows[source.name] = max(rows.get(source.name, 0), source.first + source.shape[0])
        found: dict[str, Pair] = {}
        for name, source in sources.items():
            own = name.removesuffix(".weight")
            if own == name or own.rpartition(".")[2] not in adaptable(self._config):
                continue
            stored = f"{PREFIX}model.layers.{layer}.{source.name.removesuffix('.weight')}"
            if f"{stored}.lora_A.weight" not in self._weights:
                continue
            a = self._read(f"{stored}.lora_A.weight", (self._rank, source.shape[1]))
            b = self._read(f"{stored}.lora_B.weight", (rows[source.name], self._rank))
            found[f"{layer}.{own}"] = a, source.arranged(b[source.rows(slice(None))]) * np.float32(self._scale)
        return found

    def _read(self, name: str, shape: tuple[int, ...]) -> Any:
        if (found := self._weights.shape(name)) != shape:
            raise self._refused(f"{name} has the shape {found}; this model and r make it {shape}")
        self._left.discard(name)
        return self._values(name, shape)

    def _values(self, name: str, shape: tuple[int, ...]) -> Any:
        return self._weights.read(name).astype(np.float32)

    def _refused(self, why: str) -> HandlerLoadError:
        return HandlerLoadError(f"adapter {self._name}: {why}")


class _Checker(_Reader):
    def _values(self, name: str, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(np.float32(0), shape)
