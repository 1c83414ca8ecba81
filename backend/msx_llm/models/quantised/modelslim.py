"""ModelSlim's files, whose `quant_model_description.json` has the method of each tensor."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from msx_core.json_text import json_text
from msx_llm.models.quantised.format import (
    Activations,
    Array,
    LinearFormat,
    QuantisedMatrix,
    Shape,
    StaticInputs,
    Tensors,
)
from msx_llm.models.quantised.scheme import LAYERS, ROOT, Quantisation
from msx_sdk.errors import HandlerLoadError

DESCRIPTIONS = "quant_model_description*.json"
WEIGHTS = "quant_model_weight*.safetensors"
INDICES = f"{WEIGHTS}.index.json"
MOST_BYTES = 64 << 20
ACTIVATIONS: Mapping[str, Activations] = {"W8A8": "static", "W8A8_DYNAMIC": "dynamic", "W8A16": "float"}
FLOAT = "FLOAT"
_WEIGHT = ".weight"


def description_of(folder: Path) -> Path | None:
    """Raises HandlerLoadError where there are several."""
    found = sorted(folder.glob(DESCRIPTIONS))
    if len(found) > 1:
        raise HandlerLoadError(
            f"{found[0].name} and {found[1].name}: a model has one description of its quantised tensors; "
            "keep the one that belongs to the weights"
        )
    return found[0] if found else None


def configure(path: Path) -> Quantisation:
    """Raises HandlerLoadError."""
    return Quantisation(None, formats={name: _format(path, name, kind) for name, kind in _kinds(path).items()})


def _kinds(path: Path) -> dict[str, str]:
    """The method of each linear layer."""
    if path.stat().st_size > MOST_BYTES:
        raise HandlerLoadError(f"{path.name} has more than {MOST_BYTES >> 20} MiB; no description is as long")
    try:
        given = msgspec.json.decode(json_text(path.read_bytes()).encode(), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, ValueError) as error:
        raise HandlerLoadError(f"{path.name} is not an object of JSON: {error}") from None
    names = (name for name in given if name.endswith(_WEIGHT) and LAYERS.search(name))
    return {_layer(name): bytes(given[name]).decode().strip('"') for name in names}


def _layer(name: str) -> str:
    return ROOT + name[name.index("layers.") :].removesuffix(_WEIGHT)


def _format(path: Path, name: str, kind: str) -> LinearFormat | None:
    if kind == FLOAT:
        return None
    if kind not in ACTIVATIONS:
        raise HandlerLoadError(
            f"{path.name}, {name}.weight: {kind!r} is not supported; {', '.join((FLOAT, *ACTIVATIONS))} can be read"
        )
    return ModelSlimFormat(activations=ACTIVATIONS[kind], brings_bias=kind == "W8A8")


class ModelSlimFormat(LinearFormat, frozen=True, kw_only=True):
    def tensors(self, outputs: int, inputs: int) -> Mapping[str, Shape]:
        found: dict[str, Shape] = {"weight": (outputs, inputs), "weight_scale": (outputs, 1)}
        if self.activations != "static":
            return found
        one: Shape = (1,)
        return found | {"input_scale": one, "input_offset": one, "quant_bias": (outputs,), "deq_scale": (outputs,)}

    def further(self) -> frozenset[str]:
        return frozenset(("weight_offset", "bias") if self.brings_bias else ("weight_offset",))

    def read(self, files: Tensors, name: str, inputs: slice, outputs: slice) -> QuantisedMatrix:
        """Whether an offset is added to the codes or taken from them is nowhere said, so that there may be none."""
        offsets = f"{name}.weight_offset"
        if offsets in files and files.read(offsets).any():
            raise HandlerLoadError(f"{offsets}: only zeros are supported; quantise the weights with w_sym=True")
        codes = files.read(f"{name}.weight", outputs, inputs).astype(np.int8)
        scales = files.read(f"{name}.weight_scale", outputs).astype(np.float32).T
        static = self._static(files, name, outputs) if self.activations == "static" else None
        return QuantisedMatrix(codes.T, scales, static=static)

    def _static(self, files: Tensors, name: str, outputs: slice) -> StaticInputs:
        scale, offset = (float(files.read(f"{name}.{kind}")[0]) for kind in ("input_scale", "input_offset"))
        bias, factors = files.read(f"{name}.quant_bias", outputs), _factors(files.read(f"{name}.deq_scale", outputs))
        sums = files.read(f"{name}.weight", outputs).sum(1, dtype=np.int64)
        added = ((bias + offset * sums) * factors).astype(np.float32)
        return StaticInputs(scale, int(offset), bias.astype(np.int32), factors, added)


def _factors(array: Array) -> Array:
    """Convert to float32; factors of float16 models are int64 that hold the bits of a float32."""
    if array.dtype == np.int64:
        return array.astype(np.uint32).view(np.float32)
    return array.astype(np.float32)
