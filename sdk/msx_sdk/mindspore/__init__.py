"""Helpers for handlers that run MindSpore, shared with the built-in ones. MindSpore itself is imported by `setup`.

Layers for models of several ranks are in `msx_sdk.mindspore.layers`, which imports MindSpore.
"""

from msx_core.mindspore.export import export
from msx_core.mindspore.loading import load_shards
from msx_core.mindspore.network import Network, load_checkpoint, load_mindir, load_network
from msx_core.mindspore.options import model_file, read_options
from msx_core.mindspore.parameters import load_parameters
from msx_core.mindspore.runtime import setup
from msx_core.mindspore.weights import Weights
from msx_sdk.mindspore import collectives
from msx_sdk.mindspore._pipeline import PipelineHandler
from msx_sdk.mindspore._tensor_parallel import TensorParallelHandler
from msx_sdk.mindspore.parallel import Parallel, init_parallel

__all__ = [
    "Network",
    "Parallel",
    "PipelineHandler",
    "TensorParallelHandler",
    "Weights",
    "collectives",
    "export",
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
