"""`--handler checkpoint`: a network defined in Python, with its weights from a checkpoint."""

from msx_backend.handlers._tensors import TensorHandler
from msx_sdk import Context
from msx_sdk.mindspore import Network, load_checkpoint


class CheckpointHandler(TensorHandler):
    """Serves `--model-file net.py` with the parameters of `--serialized-file`, a `.ckpt` or `.safetensors`."""

    parallel_types = ("tp",)
    packed_with = ("--model-file", "--serialized-file")
    platform = "mindspore_checkpoint"

    def load(self, context: Context) -> Network:
        return load_checkpoint(context, self.parallel)
