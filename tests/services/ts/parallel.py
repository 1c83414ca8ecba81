"""Handlers of parallel models on libraries that are not served here."""

from ts.torch_handler.distributed.base_deepspeed_handler import BaseDeepSpeedHandler
from ts.torch_handler.distributed.base_pippy_handler import BasePippyHandler


class OnPippy(BasePippyHandler):
    pass


class OnDeepSpeed(BaseDeepSpeedHandler):
    pass
