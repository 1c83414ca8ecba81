"""Layers whose weights are divided over the ranks of a tensor-parallel group.

They compute the same on one rank as on many, eagerly and in graphs. Weights lie as [in, out], which is faster on a CPU;
files may have them as [out, in] (Hugging Face, `nn.Dense`). Importing this module imports MindSpore: do so after
`init_parallel`, in `build` or `layers`, or in a module imported there.
"""

from msx_core.mindspore.layers import (
    AllGather,
    AllReduce,
    ColumnParallelLinear,
    RowParallelLinear,
    Stored,
    VocabParallelEmbedding,
    VocabParallelHead,
    counted,
)

__all__ = [
    "AllGather",
    "AllReduce",
    "ColumnParallelLinear",
    "RowParallelLinear",
    "Stored",
    "VocabParallelEmbedding",
    "VocabParallelHead",
    "counted",
]
