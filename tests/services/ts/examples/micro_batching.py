"""As TorchServe's example of micro-batches: `handle` is replaced before anything else is set up."""

from ts.handler_utils.micro_batching import MicroBatching
from ts.torch_handler.image_classifier import ImageClassifier


class MicroBatchingHandler(ImageClassifier):
    def __init__(self):
        self.handle = MicroBatching(self)

    def initialize(self, ctx):
        super().initialize(ctx)
        section = ctx.model_yaml_config.get("micro_batching", {})
        if parallelism := section.get("parallelism"):
            self.handle.parallelism = parallelism
        self.handle.micro_batch_size = section.get("micro_batch_size", 1)
