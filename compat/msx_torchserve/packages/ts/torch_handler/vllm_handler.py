"""`ts.torch_handler.vllm_handler`: imports, and says what to use."""

from ..handler_utils.distributed._gone import VLLM, gone
from .base_handler import BaseHandler


class VLLMHandler(BaseHandler):
    def __init__(self) -> None:
        gone(f"{type(self).__name__}, a handler on vLLM,", VLLM)
