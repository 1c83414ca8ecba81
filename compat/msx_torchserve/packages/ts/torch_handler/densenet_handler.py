"""`ts.torch_handler.densenet_handler`: a name of older handlers for what `BaseHandler` does."""

from .base_handler import BaseHandler


class DenseNetHandler(BaseHandler):
    pass
