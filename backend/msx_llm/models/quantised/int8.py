"""Weights of a byte each, with a scale for each output: those of compressed-tensors."""

from collections.abc import Mapping

import numpy as np

from msx_llm.models.quantised.format import Array, LinearFormat, QuantisedMatrix, Shape, StaticInputs, Tensors


class Int8Format(LinearFormat, frozen=True, kw_only=True):
    def tensors(self, outputs: int, inputs: int) -> Mapping[str, Shape]:
        found: dict[str, Shape] = {"weight": (outputs, inputs), "weight_scale": (outputs, 1)}
        return found | ({"input_scale": (1,)} if self.activations == "static" else {})

    def read(self, files: Tensors, name: str, inputs: slice, outputs: slice) -> QuantisedMatrix:
        codes = files.read(f"{name}.weight", outputs, inputs)
        scales = files.read(f"{name}.weight_scale", outputs).astype(np.float32).T
        static = self._static(files, name, outputs, scales[0]) if self.activations == "static" else None
        return QuantisedMatrix(codes.astype(np.int8).T, scales, static=static)

    def _static(self, files: Tensors, name: str, outputs: slice, scales: Array) -> StaticInputs:
        scale = float(files.read(f"{name}.input_scale")[0])
        none = np.zeros(len(scales), np.int32)
        return StaticInputs(scale, 0, none, scale * scales, none.astype(np.float32))
