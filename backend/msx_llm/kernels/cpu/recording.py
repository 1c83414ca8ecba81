"""Which decoders have layers that share graphs. It imports no MindSpore."""

from msx_llm.models.config import DecoderConfig
from msx_sdk.mindspore.parallel import Parallel


def records(config: DecoderConfig, parallel: Parallel) -> bool:
    """Whether layers can be recorded: MindSpore does not record the operators that choose experts, nor is it known of
    the states of gated delta nets, and of layers that return no residual."""
    plain = config.experts is None and config.delta is None and not config.layer_factors
    return plain and parallel.world_size == 1 and not parallel.graphs_hang
