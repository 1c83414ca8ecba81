"""Layers whose weights are divided over the ranks of a tensor-parallel group.

They compute the same on one rank as on many, eagerly and in graphs. Weights lie as [in, out], which is faster on a CPU;
files may have them as [out, in] (Hugging Face, `nn.Dense`). Importing this module imports MindSpore: do so after
`init_parallel`, in `build` or `layers`, or in a module imported there.
"""

from msx_core.mindspore.layers.collectives import AllGather as AllGather
from msx_core.mindspore.layers.collectives import AllReduce as AllReduce
from msx_core.mindspore.layers.collectives import counted as counted
from msx_core.mindspore.layers.linear import ColumnParallelLinear as ColumnParallelLinear
from msx_core.mindspore.layers.linear import RowParallelLinear as RowParallelLinear
from msx_core.mindspore.layers.shards import Stored as Stored
from msx_core.mindspore.layers.vocabulary import VocabParallelEmbedding as VocabParallelEmbedding
from msx_core.mindspore.layers.vocabulary import VocabParallelHead as VocabParallelHead
