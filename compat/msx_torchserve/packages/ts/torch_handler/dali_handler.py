"""`ts.torch_handler.dali_handler`: imports, and says what to use."""

from abc import ABC

from ..handler_utils.distributed._gone import gone
from .base_handler import BaseHandler

INSTEAD = "NVIDIA's DALI needs its GPUs; ts.torch_handler.image_classifier decodes images on the CPU"


class DALIHandler(BaseHandler, ABC):
    def __init__(self) -> None:
        gone(f"{type(self).__name__}, a handler on DALI,", INSTEAD)
