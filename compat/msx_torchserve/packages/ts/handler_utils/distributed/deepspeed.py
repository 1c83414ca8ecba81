"""`ts.handler_utils.distributed.deepspeed`: imports, and says what to use."""

from typing import Any, NoReturn

from ._gone import gone


def get_ds_engine(model: Any, ctx: Any) -> NoReturn:
    gone("DeepSpeed (get_ds_engine)")


def create_checkpoints_json(model_path: str, checkpoints_json: str) -> NoReturn:
    gone("DeepSpeed (create_checkpoints_json)")
