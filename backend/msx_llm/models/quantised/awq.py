"""AWQ's files of the version `gemm`: neighbouring outputs are interleaved in each word."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from msx_llm.models.quantised.format import Array, LinearFormat, QuantisedMatrix, Shape, Tensors
from msx_llm.models.quantised.given import GivenMembers
from msx_llm.models.quantised.packing import grouped, signed, unpacked, words_of
from msx_llm.models.quantised.scheme import Quantisation, part_of

ORDER = np.argsort([0, 2, 4, 6, 1, 3, 5, 7])
"""Where each of eight neighbours is in its word."""


def configure(given: Mapping[str, Any]) -> Quantisation:
    members = GivenMembers(given)
    members.only("version", "gemm", default="gemm", case=False)
    members.only("bits", 4, default=4, other="w_bit")
    group = members.group("group_size", 128, other="q_group_size")
    zeros = members.flag("zero_point", True)
    kept = members.names("modules_to_not_convert")
    return Quantisation(AwqFormat(bits=4, group=group, zeros=zeros), tuple(map(part_of, kept)))


class AwqFormat(LinearFormat, frozen=True, kw_only=True):
    def tensors(self, outputs: int, inputs: int) -> Mapping[str, Shape]:
        groups, words = self.groups(inputs), -(-outputs // 8)
        return {"qweight": (inputs, words), "qzeros": (groups, words), "scales": (groups, outputs)}

    def read(self, files: Tensors, name: str, inputs: slice, outputs: slice) -> QuantisedMatrix:
        groups = grouped(inputs, self.group)
        codes = _columns(files, f"{name}.qweight", inputs, outputs)
        scales = files.read(f"{name}.scales", groups, outputs).astype(np.float32)
        zeros = _columns(files, f"{name}.qzeros", groups, outputs).astype(np.float32) if self.zeros else None
        return QuantisedMatrix(codes, scales, zeros)


def _columns(files: Tensors, name: str, rows: slice, outputs: slice) -> Array:
    words, own = words_of(outputs, 4)
    codes = unpacked(files.read(name, rows, words), 4, axis=1)
    neighbours = codes.reshape(len(codes), -1, len(ORDER))[..., ORDER].reshape(codes.shape)
    return signed(neighbours[:, own], 4)
