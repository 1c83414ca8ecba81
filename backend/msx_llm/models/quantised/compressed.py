"""Files of compressed-tensors: `int-quantized` with a number in each byte, `pack-quantized` with several in a word."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from msx_llm.models.quantised.format import Activations, Array, LinearFormat, QuantisedMatrix, Shape, Tensors
from msx_llm.models.quantised.given import GivenMembers
from msx_llm.models.quantised.int8 import Int8Format
from msx_llm.models.quantised.packing import WORD, grouped, signed, unpacked, words_of
from msx_llm.models.quantised.scheme import Quantisation

PATTERN = re.compile(r"[\w.\\^$-]*(?:\*[\w.\\^$-]*){0,4}")
"""Expressions of names with at most four repetitions, which cannot take long."""


def configure(given: Mapping[str, Any]) -> Quantisation:
    members = GivenMembers(given)
    kind = members.only("format", "int-quantized", "pack-quantized")
    members.absent("kv_cache_scheme", "sparsity_config", "transform_config")
    groups = given.get("config_groups")
    if not isinstance(groups, dict) or len(groups) != 1 or not isinstance(only := next(iter(groups.values())), dict):
        raise members.wrong("config_groups", groups, "is not one group; all quantised layers must be alike")
    group = GivenMembers(only, "quantization_config.config_groups.*")
    group.absent("output_activations")
    group.only("targets", ["Linear"])
    if not isinstance(own := only.get("weights") or {}, dict):
        raise group.wrong("weights", own, "is not an object")
    weights = GivenMembers(own, f"{group.place}.weights")
    activations = _activations(only.get("input_activations"), f"{group.place}.input_activations")
    form = _packed(weights, activations) if kind == "pack-quantized" else _bytes(weights, activations)
    return Quantisation(form, tuple(_pattern(members, name) for name in members.names("ignore")))


def _bytes(weights: GivenMembers, activations: Activations) -> LinearFormat:
    _integers(weights, 8)
    weights.only("strategy", "channel")
    weights.only("symmetric", True, default=True)
    return Int8Format(activations=activations)


def _packed(weights: GivenMembers, activations: Activations) -> LinearFormat:
    _integers(weights, 4, 8)
    if activations != "float":
        raise weights.wrong("num_bits", weights.given.get("num_bits"), "has no activations in pack-quantized files")
    strategy = weights.only("strategy", "channel", "group")
    group = weights.group("group_size", None) if strategy == "group" else None
    weights.only("actorder", None, "static", "weight")
    symmetric = weights.flag("symmetric", True)
    return PackedFormat(bits=weights.given["num_bits"], group=group, zeros=not symmetric)


def _integers(members: GivenMembers, *bits: int) -> None:
    members.only("num_bits", *bits)
    members.only("type", "int", default="int")


def _activations(given: Any, place: str) -> Activations:
    if given is None:
        return "float"
    members = GivenMembers(given if isinstance(given, dict) else {}, place)
    _integers(members, 8)
    members.only("symmetric", True, default=True)
    dynamic = members.flag("dynamic", False)
    members.only("strategy", "token" if dynamic else "tensor")
    return "dynamic" if dynamic else "static"


def _pattern(members: GivenMembers, name: str) -> str:
    if not name.startswith("re:"):
        return f"{re.escape(name)}$"
    pattern = name.removeprefix("re:")
    try:
        re.compile(pattern)
    except re.error as error:
        raise members.wrong("ignore", name, f"is not a regular expression: {error}") from None
    if PATTERN.fullmatch(pattern) is None:
        raise members.wrong("ignore", name, "is not an expression of letters, dots and at most four *")
    return pattern


class PackedFormat(LinearFormat, frozen=True, kw_only=True):
    """Weights in words along their inputs, zero points along outputs; both are written from half of the range on."""

    def tensors(self, outputs: int, inputs: int) -> Mapping[str, Shape]:
        groups, each = self.groups(inputs), WORD // self.bits
        found: dict[str, Shape] = {"weight_packed": (outputs, -(-inputs // each)), "weight_scale": (outputs, groups)}
        return found | ({"weight_zero_point": (-(-outputs // each), groups)} if self.zeros else {})

    def further(self) -> frozenset[str]:
        return frozenset(("weight_shape",))

    def read(self, files: Tensors, name: str, inputs: slice, outputs: slice) -> QuantisedMatrix:
        words, own = words_of(inputs, self.bits)
        codes = unpacked(files.read(f"{name}.weight_packed", outputs, words), self.bits, axis=1)[:, own]
        groups = grouped(inputs, self.group)
        scales = files.read(f"{name}.weight_scale", outputs, groups).astype(np.float32).T
        return QuantisedMatrix(signed(codes, self.bits).T, scales, self._zeros(files, name, groups, outputs))

    def _zeros(self, files: Tensors, name: str, groups: slice, outputs: slice) -> Array | None:
        if not self.zeros:
            return None
        words, own = words_of(outputs, self.bits)
        zeros = unpacked(files.read(f"{name}.weight_zero_point", words, groups), self.bits, axis=0)[own]
        return signed(zeros, self.bits).T.astype(np.float32)
