"""What a handler that runs MindSpore shares with the built-in ones. MindSpore itself is imported by `setup`.

Layers for models of several ranks are in `msx_sdk.mindspore.layers`, which imports MindSpore.
"""

from msx_sdk.mindspore import collectives
from msx_sdk.mindspore.loading import load_shards
from msx_sdk.mindspore.network import Network, load_checkpoint, load_mindir, load_network
from msx_sdk.mindspore.options import model_file, read_options
from msx_sdk.mindspore.parallel import Parallel, init_parallel
from msx_sdk.mindspore.parameters import load_parameters
from msx_sdk.mindspore.pipeline import PipelineHandler
from msx_sdk.mindspore.runtime import setup
from msx_sdk.mindspore.tensor_parallel import TensorParallelHandler
from msx_sdk.mindspore.weights import Weights

__all__ = [
    "Network",
    "Parallel",
    "PipelineHandler",
    "TensorParallelHandler",
    "Weights",
    "collectives",
    "init_parallel",
    "load_checkpoint",
    "load_mindir",
    "load_network",
    "load_parameters",
    "load_shards",
    "model_file",
    "read_options",
    "setup",
]
