"""Handlers of parallel models on libraries that are not served here."""

from ts.torch_handler.distributed.base_deepspeed_handler import BaseDeepSpeedHandler
from ts.torch_handler.distributed.base_pippy_handler import BasePippyHandler
from ts.torch_handler.vllm_handler import VLLMHandler


class OnPippy(BasePippyHandler):
    pass


class OnDeepSpeed(BaseDeepSpeedHandler):
    pass


class OnVllm(VLLMHandler):
    pass
