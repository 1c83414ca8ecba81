"""`ts.torch_handler.distributed.base_pippy_handler`: imports, and says what to use."""

from abc import ABC

from ...handler_utils.distributed._gone import gone
from ..base_handler import BaseHandler


class BasePippyHandler(BaseHandler, ABC):
    def __init__(self) -> None:
        gone(f"{type(self).__name__}, a handler on PiPPy,")
