"""One class of its own, beside those that it imports."""

from ts.torch_handler.base_handler import BaseHandler
from ts.torch_handler.image_classifier import ImageClassifier  # noqa: F401


class OnlyClass(BaseHandler):
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return ["one class"] * len(data)
