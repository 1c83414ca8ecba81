"""`ts.handler_utils.distributed.pt_pippy`: imports, and says what to use."""

from typing import Any, NoReturn

from ._gone import gone


def initialize_rpc_workers(local_rank: int, world_size: int, ctx: Any) -> NoReturn:
    gone("PiPPy (initialize_rpc_workers)")


def get_pipeline_driver(model: Any, world_size: int, ctx: Any) -> NoReturn:
    gone("PiPPy (get_pipeline_driver)")


get_pipline_driver = get_pipeline_driver
"""As TorchServe's page on large models spells it."""
