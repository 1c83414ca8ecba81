"""Model folders whose linear layers are quantised, by each method's own definition in NumPy, and the same models with
the numbers that those integers stand for: written here anew, so that nothing of the engine's reading is in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Tensors = dict[str, Array]
AWQ_PLACES = (0, 2, 4, 6, 1, 3, 5, 7)
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
TOKENS = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True, "symmetric": True}


@dataclass(frozen=True)
class Quantised:
    """The tensors of a layer in the file, behind its name, and its weight [out, in] as they define it."""

    tensors: Tensors
    weight: Array
    bias: Array | None = None
    """Where it is rounded, too."""


Method = Callable[[Array, Any], Quantised]
SIZES: dict[str, Any] = {"num_hidden_layers": 2, "layer_types": None, "intermediate_size": 128}
EXPERTS = {"moe_intermediate_size": 64}
WIDE: dict[str, dict[str, Any]] = {
    "qwen3_moe": EXPERTS,
    "qwen2_moe": EXPERTS | {"shared_expert_intermediate_size": 64},
}
"""Sizes of models whose inputs groups of 32 divide."""


def rounded(weight: Array, bits: int, group: int, zeros: bool) -> tuple[Array, Array, Array]:
    """weight [out, in] -> codes from 0 on [out, in], scales and zero points [out, groups]."""
    parts = weight.reshape(len(weight), -1, group)
    most = (1 << bits) - 1
    if zeros:
        low, high = np.minimum(parts.min(-1), 0), np.maximum(parts.max(-1), 0)
        scales = ((high - low) / most).astype(np.float16)
        points = np.clip(np.rint(-low / scales), 1, most)
    else:
        scales = (np.abs(parts).max(-1) / (most // 2)).astype(np.float16)
        points = np.full(scales.shape, (most + 1) // 2, np.float32)
    codes = np.clip(np.rint(parts / scales[..., None]) + points[..., None], 0, most)
    return codes.reshape(weight.shape).astype(np.int64), scales, points.astype(np.int64)


def meant(codes: Array, scales: Array, points: Array, group: int) -> Array:
    spread = [np.repeat(it.astype(np.float32), group, 1) for it in (scales, points)]
    return ((codes - spread[1]) * spread[0]).astype(np.float32)


def packed(codes: Array, bits: int, places: tuple[int, ...] | None = None) -> Array:
    """Along the last axis; `places`: which of neighbours is in each place of a word."""
    each = 32 // bits
    parts = np.pad(codes, ((0, 0), (0, -codes.shape[1] % each))).reshape(len(codes), -1, each)
    words = np.zeros(parts.shape[:2], np.uint32)
    for place, number in enumerate(places or range(each)):
        words |= parts[..., number].astype(np.uint32) << np.uint32(place * bits)
    return words.view(np.int32)


def awq(weight: Array, group: int, zeros: bool = True) -> Quantised:
    codes, scales, points = rounded(weight, 4, group, zeros)
    tensors = {"qweight": packed(codes.T, 4, AWQ_PLACES), "qzeros": packed(points.T, 4, AWQ_PLACES)}
    return Quantised({**tensors, "scales": scales.T}, meant(codes, scales, points, group))


def gptq(weight: Array, group: int, bits: int = 4, ordered: bool = False, lower: bool = True) -> Quantised:
    outputs, inputs = weight.shape
    places = np.arange(inputs) // group
    if ordered:
        places = np.random.default_rng(inputs).permutation(places)
    order = np.argsort(places, kind="stable")
    codes, scales, points = rounded(weight[:, order], bits, group, True)
    found, own = np.empty_like(codes), np.empty((outputs, inputs), np.float32)
    found[:, order], own[:, order] = codes, meant(codes, scales, points, group)
    tensors = {"qweight": packed(found, bits).T, "qzeros": packed(points.T - lower, bits), "scales": scales.T}
    return Quantised({**tensors, "g_idx": places.astype(np.int32), "bias": np.zeros(outputs, np.float16)}, own)


def pack_quantized(weight: Array, group: int, bits: int = 4, zeros: bool = False) -> Quantised:
    codes, scales, points = rounded(weight, bits, group, zeros)
    tensors = {"weight_packed": packed(codes, bits), "weight_scale": scales}
    tensors["weight_shape"] = np.array(weight.shape, np.int64)
    if zeros:
        tensors["weight_zero_point"] = packed(points.T, bits).T
    return Quantised(tensors, meant(codes, scales, points, group))


def int_quantized(weight: Array, group: Any = None) -> Quantised:
    codes, scales, points = rounded(weight, 8, weight.shape[1], False)
    tensors = {"weight": (codes - points).astype(np.int8), "weight_scale": scales}
    return Quantised(tensors, meant(codes, scales, points, weight.shape[1]))


def modelslim(weight: Array, kind: str, bias: Array | None = None) -> Quantised:
    """W8A8 has a scale of the inputs, and all biases in `quant_bias`."""
    made = int_quantized(weight)
    codes, scales = made.tensors["weight"], made.tensors["weight_scale"].astype(np.float32)
    tensors: Tensors = {"weight": codes, "weight_scale": scales, "weight_offset": np.zeros_like(scales)}
    if kind == "W8A8":
        step, offset = np.float32(INPUT_STEP), np.float32(INPUT_OFFSET)
        factors = (step * scales[:, 0]).astype(np.float32)
        whole = np.rint((np.zeros(len(factors)) if bias is None else bias) / factors)
        shift, bias = whole - offset * codes.sum(1, dtype=np.int64), (whole * factors).astype(np.float32)
        tensors |= {"input_scale": step.reshape(1), "input_offset": offset.reshape(1)}
        tensors |= {"quant_bias": shift.astype(np.int32), "deq_scale": factors}
    return Quantised(tensors, made.weight, bias if kind == "W8A8" else None)


INPUT_STEP, INPUT_OFFSET = 0.0625, 3
"""Scale and offset of ModelSlim's inputs: they are within 8, and a scale is a power of two, so that 16 bits hold it."""


@dataclass(frozen=True)
class Case:
    """How a model is quantised. `given` is its `quantization_config`; of ModelSlim the methods of tensors."""

    id: str
    quantise: Callable[..., Quantised]
    options: dict[str, Any]
    given: dict[str, Any]
    modelslim: str = ""
    kept: str = "no_such_layer"
    """Layers with this in their names stay as they are."""
    long: bool = False
    """It is like another one."""


def compressed(kind: str, weights: dict[str, Any], inputs: dict[str, Any] | None = None) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    given = {"quant_method": "compressed-tensors", "format": kind, "config_groups": {"group_0": group}}
    return {**given, "ignore": ["lm_head", "re:.*layers.1.self_attn.o_proj"], "kv_cache_scheme": None}


def _words(bits: int, group: int | None, symmetric: bool = True) -> dict[str, Any]:
    strategy = "channel" if group is None else "group"
    weights = {"num_bits": bits, "type": "int", "strategy": strategy, "group_size": group, "symmetric": symmetric}
    return compressed("pack-quantized", weights)


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "GEMM"}
IGNORED = "layers.1.self_attn.o_proj"
CASES = (
    Case(
        "awq", awq, {"group": 32}, AWQ | {"modules_to_not_convert": ["layers.0.self_attn"]}, kept="layers.0.self_attn"
    ),
    Case("gptq", gptq, {"group": 32}, GPTQ, long=True),
    Case("gptq_desc_act", gptq, {"group": 32, "ordered": True}, GPTQ | {"desc_act": True}),
    Case("gptq_v2", gptq, {"group": 32, "lower": False}, GPTQ | {"checkpoint_format": "gptq_v2"}, long=True),
    Case("gptq_8", gptq, {"group": 32, "bits": 8}, GPTQ | {"bits": 8}),
    Case("packed_4", pack_quantized, {"group": 32}, _words(4, 32), kept=IGNORED, long=True),
    Case("packed_4_zeros", pack_quantized, {"group": 32, "zeros": True}, _words(4, 32, False), kept=IGNORED),
    Case("packed_8", pack_quantized, {"group": None, "bits": 8}, _words(8, None), kept=IGNORED),
    Case("int_quantized", int_quantized, {}, compressed("int-quantized", INT8, TOKENS), kept=IGNORED),
    Case("modelslim_w8a16", modelslim, {"kind": "W8A16"}, {}, "W8A16", kept="layers.1.mlp.down_proj", long=True),
    Case("modelslim_w8a8_dynamic", modelslim, {"kind": "W8A8_DYNAMIC"}, {}, "W8A8_DYNAMIC", long=True),
    Case("modelslim_w8a8", modelslim, {"kind": "W8A8"}, {}, "W8A8", kept="layers.0.self_attn.o_proj"),
)
BY_ID = {case.id: case for case in CASES}


def write_quantised(plain: Path, case: Case, folder: Path) -> tuple[Path, Path]:
    """-> the quantised model, and the one of the numbers that it means."""
    from safetensors.numpy import load_file, save_file

    tensors, config = load_file(plain / "model.safetensors"), json.loads((plain / "config.json").read_text())
    found, own, kinds = Tensors(), Tensors(), dict[str, str]()
    for name, stored, meaning in _layers(tensors, case):
        found |= stored
        own |= meaning
        kinds |= dict.fromkeys(stored, case.modelslim if name else "FLOAT")
    quantised, numbers = folder / "quantised", folder / "numbers"
    for path in (quantised, numbers):
        path.mkdir(parents=True)
    (numbers / "config.json").write_text(json.dumps(config))
    save_file(own, numbers / "model.safetensors")
    given = config | ({"quantization_config": case.given} if case.given else {})
    (quantised / "config.json").write_text(json.dumps(given))
    if case.modelslim:
        (quantised / "quant_model_description.json").write_text(json.dumps({"model_quant_type": "W8A8"} | kinds))
    weights = "quant_model_weights.safetensors" if case.modelslim else "model.safetensors"
    save_file({name: np.ascontiguousarray(array) for name, array in found.items()}, quantised / weights)
    return quantised, numbers


def _layers(tensors: Tensors, case: Case) -> Iterator[tuple[str, Tensors, Tensors]]:
    """The tensors of each layer in both files; of others as they are, without a name."""
    for name, array in tensors.items():
        layer = name.removesuffix(".weight")
        if layer == name or not layer.endswith(("_proj", "_with_mqa")) or case.kept in name:
            replaced = case.modelslim == "W8A8" and name.endswith("_proj.bias") and case.kept not in name
            if not replaced:
                yield "", {name: array}, {name: array}
            continue
        options = dict(case.options)
        if case.quantise is modelslim:
            options["bias"] = tensors.get(f"{layer}.bias")
        if "group" in options and options["group"] is None:
            options["group"] = array.shape[1]
        made = case.quantise(array, **options)
        stored = {f"{layer}.{kind}": it for kind, it in made.tensors.items()}
        if f"{layer}.bias" in tensors:
            stored.pop(f"{layer}.bias", None)
        meaning = {name: made.weight}
        if f"{layer}.bias" in tensors and made.bias is not None:
            meaning[f"{layer}.bias"] = made.bias
        yield layer, stored, meaning
