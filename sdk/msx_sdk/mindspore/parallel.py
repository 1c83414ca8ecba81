"""Which part of a model this rank holds, and the start of the collectives between the ranks."""

from msx_core.mindspore.parallel import Parallel, init_parallel

__all__ = ["Parallel", "init_parallel"]
