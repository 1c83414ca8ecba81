"""The operators of MindSpore 2.10 that the engine calls on an NPU, each from one place of this package.

Cells take them from here by name when they are made, so that tests can put an emulation in their place.
"""

from mindspore.ops import AllReduce
from mindspore.ops.auto_generate import (
    Add,
    ApplyRotaryPosEmb,
    BatchMatMul,
    Cast,
    DynamicQuantExt,
    FusedAddTopKDiv,
    Gather,
    GeLU,
    GroupedMatmulV4,
    MatMul,
    MoeGatingTopKSoftmax,
    MoeInitRoutingV2,
    MoeTokenUnpermute,
    Mul,
    PagedAttention,
    QuantBatchMatmul,
    QuantV2,
    ReshapeAndCache,
    RmsNorm,
    SiLU,
    SplitWithSize,
    Tile,
    WeightQuantBatchMatmul,
)
from mindspore.ops.operations.nn_ops import FlashAttentionScore

__all__ = [
    "Add",
    "AllReduce",
    "ApplyRotaryPosEmb",
    "BatchMatMul",
    "Cast",
    "DynamicQuantExt",
    "FlashAttentionScore",
    "FusedAddTopKDiv",
    "Gather",
    "GeLU",
    "GroupedMatmulV4",
    "MatMul",
    "MoeGatingTopKSoftmax",
    "MoeInitRoutingV2",
    "MoeTokenUnpermute",
    "Mul",
    "PagedAttention",
    "QuantBatchMatmul",
    "QuantV2",
    "ReshapeAndCache",
    "RmsNorm",
    "SiLU",
    "SplitWithSize",
    "Tile",
    "WeightQuantBatchMatmul",
]
