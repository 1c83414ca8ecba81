"""`--handler mindir`: any MindIR file. docs/mindspore-models.md shows the requests it takes."""

from msx_backend.handlers._tensors import TensorHandler
from msx_core.mindspore.rank_models import join_own_groups
from msx_sdk import Context
from msx_sdk.mindspore import Network, load_mindir


class MindIRHandler(TensorHandler):
    """Serves the MindIR file that was packed with `--serialized-file`; in a group each rank has its own, `{rank}`,
    and the groups of `group_config.pb`."""

    parallel_types = ("tp",)
    packed_with = ("--serialized-file",)
    platform = "mindspore_mindir"

    def load(self, context: Context) -> Network:
        if self.parallel.world_size > 1:
            join_own_groups(context, self.parallel)
        return load_mindir(context)
