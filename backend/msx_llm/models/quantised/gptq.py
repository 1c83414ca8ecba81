"""GPTQ's files: neighbouring inputs share a word, zero points those of neighbouring outputs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from msx_llm.models.quantised.format import Array, LinearFormat, QuantisedMatrix, Shape, Tensors
from msx_llm.models.quantised.given import GivenMembers
from msx_llm.models.quantised.packing import WORD, grouped, signed, unpacked, words_of
from msx_llm.models.quantised.scheme import Quantisation
from msx_sdk.errors import HandlerLoadError


def configure(given: Mapping[str, Any]) -> Quantisation:
    members = GivenMembers(given)
    bits = members.only("bits", 4, 8)
    lower = members.only("checkpoint_format", "gptq", "gptq_v2", default="gptq") == "gptq"
    members.only("lm_head", False, default=False)
    members.absent("dynamic", "modules_in_block_to_quantize")
    group, ordered = members.group("group_size", 128), members.flag("desc_act", False)
    return Quantisation(
        GptqFormat(bits=bits, group=group, zeros=True, ordered=ordered and group is not None, lower=lower)
    )


class GptqFormat(LinearFormat, frozen=True, kw_only=True):
    lower: bool = True
    """Zero points in the file are lower by 1, as in all files before version 2."""

    def tensors(self, outputs: int, inputs: int) -> Mapping[str, Shape]:
        groups, each = self.groups(inputs), WORD // self.bits
        words = {"qweight": (-(-inputs // each), outputs), "qzeros": (groups, -(-outputs // each))}
        return {**words, "scales": (groups, outputs)} | ({"g_idx": (inputs,)} if self.ordered else {})

    def further(self) -> frozenset[str]:
        """Old files have biases of zeros, and groups of neighbours are written down, too."""
        return frozenset(("g_idx", "bias"))

    def read(self, files: Tensors, name: str, inputs: slice, outputs: slice) -> QuantisedMatrix:
        groups, order = grouped(inputs, self.group), self._order(files, name)
        words, own = words_of(inputs, self.bits)
        codes = signed(unpacked(files.read(f"{name}.qweight", words, outputs), self.bits, axis=0)[own], self.bits)
        scales = files.read(f"{name}.scales", groups, outputs).astype(np.float32)
        zeros = self._zeros(files, name, groups, outputs)
        return QuantisedMatrix(codes if order is None else codes[order], scales, zeros, order)

    def _zeros(self, files: Tensors, name: str, groups: slice, outputs: slice) -> Array:
        words, own = words_of(outputs, self.bits)
        zeros = unpacked(files.read(f"{name}.qzeros", groups, words), self.bits, axis=1)[:, own]
        return zeros.astype(np.float32) + np.float32(self.lower - (1 << self.bits - 1))

    def _order(self, files: Tensors, name: str) -> Array | None:
        if f"{name}.g_idx" not in files or self.group is None:
            return None
        places = files.read(f"{name}.g_idx")
        order: Array = np.argsort(places, kind="stable").astype(np.int32)
        wanted = np.arange(len(places)) // self.group
        if not np.array_equal(places[order] if self.ordered else places, wanted):
            raise HandlerLoadError(
                f"{name}.g_idx: not each group has {self.group} inputs"
                f"{'' if self.ordered else ' in their order'}; config.json, quantization_config says group_size: "
                f"{self.group} and desc_act: {str(self.ordered).lower()}"
            )
        return order if self.ordered else None
