"""As TorchServe's stateful example: the handler keeps what a sequence has summed up; the oldest go first."""

from abc import ABC
from collections import OrderedDict

from ts.context import Context
from ts.torch_handler.base_handler import BaseHandler


class StatefulHandler(BaseHandler, ABC):
    DEFAULT_CAPACITY = 10

    def __init__(self):
        super().__init__()
        self.cache = OrderedDict()

    def initialize(self, ctx: Context):
        super().initialize(ctx)
        self.capacity = int(ctx.model_yaml_config["handler"].get("cache", {}).get("capacity", self.DEFAULT_CAPACITY))

    def preprocess(self, data):
        results = []
        for idx, row in enumerate(data):
            sequence_id = self.context.get_sequence_id(idx)
            self.context.set_response_header(idx, self.context.header_key_sequence_id, sequence_id)
            if self.context.get_request_header(idx, self.context.header_key_sequence_start):
                self.cache.pop(sequence_id, None)
            request = row.get("data") or row.get("body")
            if isinstance(request, (bytes, bytearray)):
                request = request.decode("utf-8")
            self.cache[sequence_id] = self.cache.get(sequence_id, 0) + int(request)
            while len(self.cache) > self.capacity:
                self.cache.popitem(last=False)
            results.append(self.cache.get(sequence_id))
        return results

    def inference(self, data, *args, **kwargs):
        return data

    def postprocess(self, data):
        return data
